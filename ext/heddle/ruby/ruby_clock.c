/* Heddle::Clock, for Ruby code that counts time. Programs replace Process.clock_gettime in their tests. */
#include "core/clock.h"
#include "init.h"

static VALUE now(VALUE self)
{
    return DBL2NUM((double)hd_clock_now() / HD_NS_PER_SECOND);
}

void hd_init_ruby_clock(void)
{
    rb_define_singleton_method(rb_define_module_under(hd_mHeddle, "Clock"), "now", now, 0);
}
