/* What came out of a call: nothing, an exception, or what ends the fiber (Fiber#kill, Thread#kill, throw). */
#pragma once

#include "ruby_internals.h"

enum { HD_RAISED = 1 };

typedef struct {
    int state;       /* 0: nothing; HD_RAISED, or what rb_protect says */
    VALUE exception; /* or nil: then it is in errinfo, and can only be left there */
} hd_caught;

/* (What a throw leaves in errinfo is none.) */
static inline bool hd_is_exception(VALUE object)
{
    return !hd_is_hidden(object) && RTEST(rb_obj_is_kind_of(object, rb_eException));
}

/* Calls function(argument) and catches what comes. After an exception errinfo is what it was before. */
VALUE hd_catch(VALUE (*function)(VALUE), VALUE argument, hd_caught *caught);

/* Is it a Fiber#kill? Ruby strikes with it again at the end of every switch to the fiber. */
bool hd_is_kill(const hd_caught *caught);

/* Makes errinfo what it was before; nil where that was no exception, which could not be set. */
void hd_restore_errinfo(VALUE before);

/* Lets it go on, if anything was caught. */
void hd_go_on(const hd_caught *caught);
