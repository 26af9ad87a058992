/* See core_ext.h. */
#include "core_ext.h"

#include <ruby/atomic.h>

#include "scheduler.h"

/* The methods of which there is a C version, and the names under which Ruby's own are kept. Read-only after the start:
 * Ractors share it. */
static struct {
    const char *name, *kept;
    ID name_id, kept_id;
} originals[] = {
#define ORIGINAL(name) {name, "__heddle_" name, 0, 0}
    ORIGINAL("write"),        ORIGINAL("close"),            ORIGINAL("initialize"), ORIGINAL("wait"),
    ORIGINAL("sleep"),        ORIGINAL("handle_interrupt"), ORIGINAL("close_read"), ORIGINAL("close_write"),
    ORIGINAL("send"),         ORIGINAL("connect"),          ORIGINAL("bind"),       ORIGINAL("getaddrinfo"),
    ORIGINAL("sockaddr_in"),  ORIGINAL("pack_sockaddr_in"), ORIGINAL("reopen"),     ORIGINAL("raise"),
    ORIGINAL("wakeup"),       ORIGINAL("run"),              ORIGINAL("stop"),
    ORIGINAL("flush"),        ORIGINAL("pwrite"),           ORIGINAL("tcp"),        ORIGINAL("udp"),
    ORIGINAL("kill"),
#undef ORIGINAL
};

enum { ORIGINALS_COUNT = sizeof(originals) / sizeof(*originals) };

static ID original_of(ID name)
{
    for (size_t i = 0; i < ORIGINALS_COUNT; i++)
        if (originals[i].name_id == name) return originals[i].kept_id;
    rb_bug("heddle: %s is not in the list of replaced methods", rb_id2name(name));
}

VALUE hd_call_original(VALUE self, int argc, const VALUE *argv, int keywords)
{
    return rb_funcallv_kw(self, original_of(rb_frame_this_func()), argc, argv, keywords);
}

/* -- when the methods are put in place: once, with the first scheduler of the process, in whichever Ractor ---- */

enum { NOT_YET, UNDER_WAY, DONE };
static rb_atomic_t replaced = NOT_YET;

/* @return [Boolean] is the caller the first one, and has to do it? */
static VALUE begin_replacing(VALUE self)
{
    (void)self;
    return HD_BOOL(RUBY_ATOMIC_CAS(replaced, NOT_YET, UNDER_WAY) == NOT_YET);
}

static VALUE end_replacing(VALUE self)
{
    (void)self;
    RUBY_ATOMIC_SET(replaced, DONE);
    return Qnil;
}

static VALUE replaced_p(VALUE self)
{
    (void)self;
    return HD_BOOL(RUBY_ATOMIC_LOAD(replaced) == DONE);
}

void hd_init_core_ext(void)
{
    for (size_t i = 0; i < ORIGINALS_COUNT; i++) {
        originals[i].name_id = rb_intern(originals[i].name);
        originals[i].kept_id = rb_intern(originals[i].kept);
    }
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_singleton_method(core_ext, "begin_replacing", begin_replacing, 0);
    rb_define_singleton_method(core_ext, "end_replacing", end_replacing, 0);
    rb_define_singleton_method(core_ext, "replaced?", replaced_p, 0);
}
