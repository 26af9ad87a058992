/* The result of a call that may not return: nothing, an exception, or what ends the fiber (Fiber#kill, Thread#kill,
 * throw). */
#pragma once

#include "ruby_internals.h"

enum { HD_RAISED = 1 };

typedef struct {
    int state;       /* 0: it has returned; HD_RAISED, or the state of rb_protect */
    VALUE exception; /* the exception, or nil: then it is in errinfo, and must stay there */
} hd_caught;

/* Is the value of errinfo an exception? The one of a throw is not. */
static inline bool hd_is_exception(VALUE object)
{
    return !hd_is_hidden(object) && RTEST(rb_obj_is_kind_of(object, rb_eException));
}

/* Calls function(argument) and catches what ends it. After an exception errinfo is as it was before. */
VALUE hd_catch(VALUE (*function)(VALUE), VALUE argument, hd_caught *caught);

/* Is it a Fiber#kill? Ruby raises it again at the end of every switch to the fiber. */
bool hd_is_kill(const hd_caught *caught);

/* Sets errinfo to its value of before; to nil where that was no exception, because such a value cannot be set. */
void hd_restore_errinfo(VALUE before);

/* Continues a caught exception, kill or throw, if there was one. */
void hd_go_on(const hd_caught *caught);

/* Continues what rb_protect has caught, if the state is not 0. As the first function of rb_ensure, it lets the second
 * one run in between, which then cannot clear what is being raised. */
VALUE hd_jump(VALUE state);

/* Continues what has come from outside, such as a Ctrl-C or a kill. For a call whose own errors only say that it has
 * failed, and whose caller goes on without it. */
void hd_go_on_if_interrupted(const hd_caught *caught);
