/* See interrupt_queue.h. */
#include "interrupt_queue.h"

#include "init.h"

enum { LISTS = 2 };

/* What stands for a Thread#kill in the queue (RUBY_FATAL_THREAD_KILLED in Ruby's internal/thread.h). */
#define THREAD_KILLED INT2FIX(0)

static int queue_position = -1;

static bool is_array(VALUE object)
{
    return RB_TYPE_P(object, T_ARRAY);
}

void hd_find_thread_lists(hd_hidden_objects *lists)
{
    lists->wanted = is_array;
    hd_find_hidden(rb_thread_current(), lists);
}

bool hd_knows_interrupt_queue(void)
{
    return queue_position >= 0;
}

void hd_raise_after_job(const hd_caught *caught, VALUE errinfo)
{
    if (!caught->state) return;
    VALUE sent = caught->exception;
    if (NIL_P(sent)) {
        if (RB_FIXNUM_P(rb_errinfo()) && !hd_is_kill(caught)) sent = THREAD_KILLED;
        hd_restore_errinfo(errinfo);
    }
    if (NIL_P(sent) || !hd_knows_interrupt_queue()) return;
    hd_hidden_objects lists;
    hd_find_thread_lists(&lists);
    if (lists.count != LISTS) return; /* another extension has hung a hidden list on the thread */
    rb_ary_push(lists.found[queue_position], sent);
    rb_thread_wakeup(rb_thread_current()); /* sets the flag at which Ruby looks */
}

/* Looks which list has grown: in a block of handle_interrupt this is the one of the masks. */
static VALUE find_queue(RB_BLOCK_CALL_FUNC_ARGLIST(unused, counted))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    hd_hidden_objects lists;
    hd_find_thread_lists(&lists);
    const long *before = (const long *)counted;
    if (lists.count != LISTS) return Qnil;
    bool grown[LISTS];
    for (int i = 0; i < LISTS; i++) grown[i] = RARRAY_LEN(lists.found[i]) > before[i];
    if (grown[0] != grown[1]) queue_position = grown[0] ? 1 : 0;
    return Qnil;
}

void hd_init_interrupt_queue(void)
{
    hd_hidden_objects lists;
    hd_find_thread_lists(&lists);
    if (lists.count != LISTS) return;
    long lengths[LISTS] = {RARRAY_LEN(lists.found[0]), RARRAY_LEN(lists.found[1])};
    VALUE mask = rb_hash_new();
    rb_hash_aset(mask, rb_eNoMatchingPatternKeyError, ID2SYM(rb_intern("never")));
    rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &mask, find_queue, (VALUE)lengths);
}
