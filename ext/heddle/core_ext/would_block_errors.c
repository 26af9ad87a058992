/* Cheap errors of read_nonblock and similar methods.
 *
 * The problem: Ruby builds the message of each error anew and takes the backtrace of the whole stack, for an exception
 * that says "not yet" and is rescued a line further on.
 *
 * The way: Heddle::CoreExt.cheapen gives the class an `initialize` that copies a message made before, and sets an empty
 * backtrace, so that raising takes none. An exception that a program makes by itself has its backtrace: its message is
 * not a binary string, as the message of Ruby's C code is.
 *
 * Rejected: a method of Heddle's around each of Ruby's methods, which raises the exception without `new`. For
 * BasicSocket#read_nonblock that took 8,140 instructions in place of 7,830. The methods, and the cases in which they
 * raise, stay Ruby's own.
 *
 * The price: such an exception has no backtrace.
 *
 * Source: guides/patches.md (would_block_errors). */
#include <ruby/encoding.h>

#include "fibers/scheduler.h"
#include "ruby/init.h"

typedef struct {
    VALUE class, argument; /* Ruby passes these to `new` */
    VALUE message, number; /* the results of that; the number is nil if it is not a SystemCallError */
} known_error;

/* Filled when the classes are defined, and read-only afterwards, because Ractors share it. */
static known_error known_errors[16];
static size_t known_count;

static bool keep_backtraces;
static ID id_mesg, id_bt, id_errno; /* where Ruby keeps an exception's message, backtrace and errno */

static const known_error *find_known(VALUE class, VALUE argument)
{
    long size = RSTRING_LEN(argument);
    for (size_t i = 0; i < known_count; i++) {
        const known_error *known = &known_errors[i];
        if (known->class == class && RSTRING_LEN(known->argument) == size &&
            !memcmp(RSTRING_PTR(known->argument), RSTRING_PTR(argument), size))
            return known;
    }
    return NULL;
}

static bool backtraces_wanted(void)
{
    return keep_backtraces || RTEST(ruby_debug);
}

/* Sets the variables in Ruby's own order, so that the objects have one shape. */
static void set(VALUE error, VALUE message, const known_error *known)
{
    rb_ivar_set(error, id_mesg, message);
    rb_ivar_set(error, id_bt, rb_ary_new());
    if (!NIL_P(known->number)) rb_ivar_set(error, id_errno, known->number);
}

static VALUE error_initialize(int argc, VALUE *argv, VALUE self)
{
    const known_error *known = NULL;
    if (argc == 1 && RB_TYPE_P(argv[0], T_STRING) && RB_ENCODING_IS_ASCII8BIT(argv[0]) && !backtraces_wanted())
        known = find_known(CLASS_OF(self), argv[0]);
    if (!known) return rb_call_super(argc, argv);
    set(self, known->message == known->argument ? argv[0] : rb_str_resurrect(known->message), known);
    return self;
}

static VALUE frozen_copy(VALUE string)
{
    VALUE copy = rb_enc_str_new(RSTRING_PTR(string), RSTRING_LEN(string), rb_enc_get(string));
    rb_enc_str_coderange(copy); /* found out once, not in each copy */
    rb_gc_register_mark_object(rb_obj_freeze(copy));
    return copy;
}

/* Learns a message that the class is raised with. Called for each of them, before the class has the new `initialize`.
 */
static bool learn(VALUE class, VALUE argument)
{
    VALUE error = rb_class_new_instance(1, &argument, class);
    VALUE message = rb_attr_get(error, id_mesg);
    if (!RB_TYPE_P(message, T_STRING)) return false; /* this Ruby keeps it elsewhere */
    if (known_count == sizeof known_errors / sizeof *known_errors) rb_raise(hd_eError, "too many messages");
    known_error *known = &known_errors[known_count++];
    known->class = class;
    known->argument = frozen_copy(argument);
    known->message = message == argument ? known->argument : frozen_copy(message);
    known->number = rb_attr_get(error, id_errno);
    rb_gc_register_mark_object(class);
    return true;
}

static VALUE cheapen(VALUE self, VALUE class, VALUE messages)
{
    for (long i = 0; i < RARRAY_LEN(messages); i++) {
        VALUE argument = rb_str_dup(RARRAY_AREF(messages, i));
        if (!learn(class, argument)) return Qfalse;
    }
    rb_define_private_method(class, "initialize", error_initialize, -1);
    return Qtrue;
}

static VALUE get_backtraces(VALUE self)
{
    return HD_BOOL(keep_backtraces);
}

static VALUE set_backtraces(VALUE self, VALUE keep)
{
    keep_backtraces = RTEST(keep);
    return keep;
}

void hd_init_would_block_errors(void)
{
    id_mesg = rb_intern("mesg");
    id_bt = rb_intern("bt");
    id_errno = rb_intern("errno");
    VALUE extension = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_singleton_method(extension, "cheapen", cheapen, 2);
    rb_define_singleton_method(hd_mHeddle, "would_block_backtraces", get_backtraces, 0);
    rb_define_singleton_method(hd_mHeddle, "would_block_backtraces=", set_backtraces, 1);
}
