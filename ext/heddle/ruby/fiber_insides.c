/* See fiber_insides.h. */
#include "fiber_insides.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "caught.h"
#include "init.h"
#include "ruby_internals.h"

typedef unsigned word; /* as wide as the searched values */

static struct {
    bool found;
    size_t in_fiber, in_thread; /* in words */
    word bit;
} blocking;

static size_t resumer; /* in pointers; 0: unknown */
static size_t root_environment; /* in pointers; 0: unknown */
static bool knows_passed;

static ID id_blocking, id_blocking_p;
static VALUE cFiber;

static size_t thread_size; /* in bytes; 0: not found yet */

static void *memory_of(VALUE object)
{
    return RTYPEDDATA_GET_DATA(object);
}

/* Is the memory of this object a block of its own on the heap? Some objects contain their data, and the main thread of
 * Ruby 4.1 and later is static (vm.c, _main_thread). */
static bool on_heap(VALUE object)
{
    Dl_info unused;
    void *memory = memory_of(object);
    return memory && (VALUE)memory - object > sizeof(struct RTypedData) && !dladdr(memory, &unused);
}

size_t hd_size_of_memory(VALUE object)
{
    if (thread_size && object == rb_thread_current()) return thread_size;
    return on_heap(object) ? hd_memory_size(memory_of(object)) : 0;
}

/* -- whether a fiber is blocking -------------------------------------------------------------------------------- */

enum { FIBER, THREAD, STRUCTS };

typedef struct {
    VALUE objects[STRUCTS];
    size_t words[STRUCTS];
    word *before[STRUCTS], *inside[STRUCTS];
} comparison;

static void copy(const comparison *compared, word *const copies[STRUCTS])
{
    for (int i = 0; i < STRUCTS; i++)
        memcpy(copies[i], memory_of(compared->objects[i]), compared->words[i] * sizeof(word));
}

static VALUE copy_inside(RB_BLOCK_CALL_FUNC_ARGLIST(unused, compared))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    copy((comparison *)compared, ((comparison *)compared)->inside);
    return Qnil;
}

static bool asks(VALUE object, ID question)
{
    return RTEST(rb_funcall(object, question, 0));
}

/* Does Ruby's own answer change with this word? */
static bool follows(word *place, word changed, VALUE object)
{
    word before = *place;
    *place = changed;
    bool blocking_now = asks(object, id_blocking_p);
    *place = before;
    return blocking_now && !asks(object, id_blocking_p);
}

static bool one_bit(word bits)
{
    return bits && !(bits & (bits - 1));
}

/* Counts the places of the fiber that have one bit more inside, if Ruby's answer confirms it. */
static int find_in_fiber(const comparison *compared)
{
    word *now = memory_of(compared->objects[FIBER]), *before = compared->before[FIBER];
    int count = 0;
    for (size_t i = 0; i < compared->words[FIBER]; i++) {
        word bit = compared->inside[FIBER][i] ^ now[i];
        if (before[i] != now[i] || !one_bit(bit) || now[i] & bit) continue;
        if (!follows(&now[i], now[i] | bit, compared->objects[FIBER])) continue;
        blocking.in_fiber = i;
        blocking.bit = bit;
        count++;
    }
    return count;
}

/* Counts such places of the thread, where the value is a counter. */
static int find_in_thread(const comparison *compared)
{
    word *now = memory_of(compared->objects[THREAD]), *before = compared->before[THREAD];
    int count = 0;
    for (size_t i = 0; i < compared->words[THREAD]; i++) {
        if (before[i] != now[i] || now[i] != 0 || compared->inside[THREAD][i] != 1) continue;
        if (!follows(&now[i], 1, cFiber)) continue;
        blocking.in_thread = i;
        count++;
    }
    return count;
}

static void find_blocking(VALUE fiber)
{
    comparison compared = {.objects = {fiber, rb_thread_current()}};
    size_t words = 0;
    for (int i = 0; i < STRUCTS; i++)
        words += compared.words[i] = hd_size_of_memory(compared.objects[i]) / sizeof(word);
    if (!compared.words[FIBER] || !compared.words[THREAD]) return;
    word *copies = malloc(2 * words * sizeof(word));
    if (!copies) return;
    compared.before[FIBER] = copies;
    compared.before[THREAD] = compared.before[FIBER] + compared.words[FIBER];
    compared.inside[FIBER] = compared.before[THREAD] + compared.words[THREAD];
    compared.inside[THREAD] = compared.inside[FIBER] + compared.words[FIBER];
    copy(&compared, compared.before);
    rb_block_call(cFiber, id_blocking, 0, NULL, copy_inside, (VALUE)&compared);
    blocking.found = find_in_fiber(&compared) == 1 && find_in_thread(&compared) == 1;
    free(copies);
}

static word *bit_of(VALUE fiber)
{
    return (word *)RTYPEDDATA_GET_DATA(fiber) + blocking.in_fiber;
}

static word *counter(void)
{
    return (word *)RTYPEDDATA_GET_DATA(rb_thread_current()) + blocking.in_thread;
}

/* Makes the fiber blocking again. In the child of a fork Ruby 4.0 has done it already. */
static VALUE block_again(VALUE fiber)
{
    if (*bit_of(fiber) & blocking.bit) return Qnil;
    *bit_of(fiber) |= blocking.bit;
    ++*counter();
    return Qnil;
}

VALUE hd_unblocked(VALUE (*function)(VALUE), VALUE argument)
{
    VALUE fiber = rb_fiber_current();
    if (!blocking.found || !(*bit_of(fiber) & blocking.bit)) return function(argument);
    *bit_of(fiber) &= ~blocking.bit;
    --*counter();
    return rb_ensure(function, argument, block_again, fiber);
}

/* -- which fiber has resumed a fiber ------------------------------------------------------------------------------ */

/* Finds the place where the memory of an object has this pointer. 0: nowhere, or in several places. */
static size_t find_pointer(VALUE object, const void *pointer)
{
    void *const *memory = memory_of(object);
    size_t found = 0, count = hd_size_of_memory(object) / sizeof(*memory);
    for (size_t i = 0; i < count; i++) {
        if (memory[i] != pointer) continue;
        if (found) return 0;
        found = i;
    }
    return found;
}

static VALUE compare_resumed(RB_BLOCK_CALL_FUNC_ARGLIST(outer, unused))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    VALUE fiber = rb_fiber_current();
    bool found = find_pointer(fiber, memory_of(outer)) == resumer;
    if (!found || find_pointer(rb_thread_current(), memory_of(fiber))) resumer = 0; /* a thread has only its root */
    return Qnil;
}

/* Finds the place of the resumer in a fiber that was resumed by another, and confirms it in a fiber that this fiber
 * resumes. */
static void find_resumer(VALUE fiber, VALUE outer)
{
    resumer = find_pointer(fiber, memory_of(outer));
    rb_fiber_resume(rb_fiber_new(compare_resumed, Qnil), 1, &fiber);
}

bool hd_is_in_root_chain(VALUE fiber)
{
    if (!resumer) return true;
    void **memory = RTYPEDDATA_GET_DATA(fiber);
    while (memory[resumer]) memory = memory[resumer];
    /* The thread itself refers only to its root fiber. */
    return find_pointer(rb_thread_current(), memory) != 0;
}

/* -- what was passed to a fiber ---------------------------------------------------------------------------------- */

/* The beginning of rb_fiber_t (cont.c, rb_context_t). */
typedef struct {
    int type, count, has_keywords;
    VALUE self, value;
} fiber_head;

static bool was_passed(VALUE fiber, int count, VALUE value)
{
    const fiber_head *head = memory_of(fiber);
    return head->count == count && !head->has_keywords && head->self == fiber && head->value == value;
}

static VALUE compare_passed(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)argv, (void)blockarg;
    return was_passed(rb_fiber_current(), 0, Qnil) ? rb_str_new_cstr("passed back") : Qnil;
}

/* Confirms the place in a fiber that was passed nothing, and in this one, to which the other has passed a value. */
static void find_passed(VALUE fiber)
{
    VALUE back = rb_fiber_resume(rb_fiber_new(compare_passed, Qnil), 0, NULL);
    knows_passed = !NIL_P(back) && was_passed(fiber, 1, back);
}

hd_passed hd_passed_to(VALUE fiber)
{
    if (!knows_passed) return (hd_passed){0, Qnil};
    const fiber_head *head = RTYPEDDATA_GET_DATA(fiber);
    return (hd_passed){head->count, head->value};
}

void hd_pass_again(VALUE fiber, hd_passed passed)
{
    if (!knows_passed) return;
    fiber_head *head = RTYPEDDATA_GET_DATA(fiber);
    head->count = passed.count;
    head->value = passed.value;
}

/* -- where a fiber keeps what it has matched ---------------------------------------------------------------------- */

/* The beginning of rb_proc_t. */
typedef struct {
    VALUE self;
    const VALUE *environment;
    const void *code;
    enum { BLOCK_OF_RUBY, BLOCK_OF_C } type;
} proc_head;

/* An environment's flags are at [0], the one around it at [-1] (vm_core.h: VM_ENV_FLAG_LOCAL, VM_ENV_PREV_EP). */
enum { ENVIRONMENT_OF_METHOD = 2, ENVIRONMENT_TAGS = 3 };

static const VALUE *method_environment(const VALUE *environment)
{
    while (!(environment[0] & ENVIRONMENT_OF_METHOD))
        environment = (const VALUE *)(environment[-1] & ~(VALUE)ENVIRONMENT_TAGS);
    return environment;
}

/* Finds the place in a fiber that was made with this Proc, a block of C. */
static void find_root_environment(VALUE fiber, VALUE body)
{
    const proc_head *proc = RTYPEDDATA_GET_DATA(body);
    if (proc->type == BLOCK_OF_C) root_environment = find_pointer(fiber, proc->environment);
}

void hd_match_apart(VALUE block)
{
    const proc_head *proc = RTYPEDDATA_GET_DATA(block);
    VALUE *fiber = RTYPEDDATA_GET_DATA(rb_fiber_current());
    if (root_environment && proc->type == BLOCK_OF_RUBY)
        fiber[root_environment] = (VALUE)method_environment(proc->environment);
}

/* -- at the beginning --------------------------------------------------------------------------------------------- */

enum { OUTER, BODY, ARGUMENTS };

static VALUE find(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)blockarg;
    VALUE fiber = rb_fiber_current();
    find_blocking(fiber);
    find_resumer(fiber, argv[OUTER]);
    if (hd_size_of_memory(fiber) >= sizeof(fiber_head)) find_passed(fiber);
    find_root_environment(fiber, argv[BODY]);
    return Qnil;
}

/* Finds the size of a thread's struct: at most the size of its block, and at most the size that Ruby reports for the
 * whole thread. It is found once, because each run asks for it. */
static void find_thread_size(VALUE thread)
{
    size_t block = hd_size_of_memory(thread), reported = RTYPEDDATA_TYPE(thread)->function.dsize(memory_of(thread));
    thread_size = reported < block ? reported : block;
}

static VALUE find_from(VALUE outer)
{
    find_thread_size(rb_thread_current());
    VALUE arguments[ARGUMENTS] = {[OUTER] = outer, [BODY] = rb_proc_new(find, Qnil)};
    VALUE fiber = rb_funcall_with_block(cFiber, rb_intern("new"), 0, NULL, arguments[BODY]);
    return rb_fiber_resume(fiber, ARGUMENTS, arguments);
}

/* A new thread lies on the heap. */
static VALUE find_in_new_thread(void *unused)
{
    return find_from(rb_fiber_current());
}

static VALUE find_all(VALUE outer)
{
    if (on_heap(rb_thread_current())) return find_from(outer);
    return rb_funcall(rb_thread_create(find_in_new_thread, NULL), rb_intern("join"), 0);
}

/* @private */
static VALUE can_unblock_p(VALUE module)
{
    return HD_BOOL(blocking.found);
}

/* @private */
static VALUE can_match_apart_p(VALUE module)
{
    return HD_BOOL(root_environment);
}

/* @private From now on nothing is written to the place. */
static VALUE leave_blocking(VALUE module)
{
    blocking.found = false;
    return Qnil;
}

/* @private */
static VALUE leave_matches(VALUE module)
{
    root_environment = 0;
    return Qnil;
}

/* @private */
static VALUE leave_the_rest(VALUE module)
{
    resumer = 0;
    knows_passed = false;
    hd_leave_owners();
    return Qnil;
}

void hd_init_fiber_insides(void)
{
    hd_caught caught;
    id_blocking = rb_intern("blocking");
    id_blocking_p = rb_intern("blocking?");
    cFiber = rb_path2class("Fiber");
    rb_gc_register_mark_object(cFiber);
    hd_catch(find_all, rb_fiber_current(), &caught);
    hd_go_on_if_interrupted(&caught);
    VALUE insides = rb_define_module_under(hd_mHeddle, "FiberInsides"); /* private: see patches.rb */
    rb_define_singleton_method(insides, "can_unblock?", can_unblock_p, 0);
    rb_define_singleton_method(insides, "can_match_apart?", can_match_apart_p, 0);
    rb_define_singleton_method(insides, "leave_blocking", leave_blocking, 0);
    rb_define_singleton_method(insides, "leave_matches", leave_matches, 0);
    rb_define_singleton_method(insides, "leave_the_rest", leave_the_rest, 0);
}
