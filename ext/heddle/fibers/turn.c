/* See turn.h. */
#include "turn.h"

#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "park.h"

bool hd_turn_look(hd_scheduler *scheduler, VALUE subject, hd_turn_end end)
{
    hd_reactor *reactor = &scheduler->reactor;
    /* a hook may be called for another thread's fiber */
    if (!hd_scheduler_turns_here(scheduler) || !hd_reactor_turn_is_over(reactor)) return false;
    if (end == HD_TURN_ENDS_LATER && !reactor->turn.extended) {
        reactor->turn.extended = true;
        reactor->turn.next_look = reactor->turn.operations + 1;
        return false;
    }
    hd_park(scheduler, &(hd_request){.kind = HD_WAIT_YIELDED, .subject = subject, .place = HD_BEHIND,
                                     .quiet = end == HD_TURN_ENDS_AMID});
    return true;
}

void hd_turn_spend_here(VALUE subject, hd_turn_end end)
{
    hd_scheduler *scheduler = hd_scheduler_here();
    if (scheduler) hd_turn_spend(scheduler, subject, end);
}

/* @private Counts an operation of a method in Ruby that begins now and may succeed without waiting. */
static VALUE spend_turn(VALUE self, VALUE subject)
{
    hd_turn_spend_here(subject, HD_TURN_ENDS);
    return Qnil;
}

/* Lets other tasks run if the turn of this task is over: a turn lasts for about a millisecond. Then it also raises a
 * pending exception: a cancel, a timeout, the failure of its scope. Call it in a loop that computes, or that takes data
 * which is always there, before each small piece of work. As long as the turn lasts, it costs a fraction of a
 * microsecond. Outside of tasks it does nothing.
 *
 * @return [void] */
static VALUE heddle_checkpoint(VALUE module)
{
    hd_turn_spend_here(Qnil, HD_TURN_ENDS);
    return Qnil;
}

/* -- OpenSSL -------------------------------------------------------------------------------------------------- */

/* OpenSSL asks the scheduler only when it has to wait, and most of its reads find a record that has come already. So
 * these methods count against the turn before they call Ruby's own. */

static VALUE call_kept(VALUE socket, ID kept, int argc, const VALUE *argv, hd_turn_end end)
{
    hd_turn_spend_here(socket, end);
    return rb_funcallv_kw(socket, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
}

static VALUE ssl_sysread(int argc, VALUE *argv, VALUE socket)
{
    return call_kept(socket, HD_KEPT("sysread"), argc, argv, HD_TURN_ENDS);
}

static VALUE ssl_sysread_nonblock(int argc, VALUE *argv, VALUE socket)
{
    return call_kept(socket, HD_KEPT("sysread_nonblock"), argc, argv, HD_TURN_ENDS);
}

static VALUE ssl_syswrite(int argc, VALUE *argv, VALUE socket)
{
    return call_kept(socket, HD_KEPT("syswrite"), argc, argv, HD_TURN_ENDS_LATER);
}

static VALUE ssl_syswrite_nonblock(int argc, VALUE *argv, VALUE socket)
{
    return call_kept(socket, HD_KEPT("syswrite_nonblock"), argc, argv, HD_TURN_ENDS_LATER);
}

void hd_init_turn(void)
{
    rb_define_singleton_method(hd_mHeddle, "checkpoint", heddle_checkpoint, 0);
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_singleton_method(core_ext, "spend_turn", spend_turn, 1);
    VALUE methods = rb_define_module_under(rb_define_module_under(core_ext, "SSLTurn"), "Methods");
    rb_define_method(methods, "sysread", ssl_sysread, -1);
    rb_define_method(methods, "sysread_nonblock", ssl_sysread_nonblock, -1);
    rb_define_method(methods, "syswrite", ssl_syswrite, -1);
    rb_define_method(methods, "syswrite_nonblock", ssl_syswrite_nonblock, -1);
}
