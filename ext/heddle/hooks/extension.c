/* The beginning of the extension: Ruby calls Init_heddle_native when it is loaded. */
#include "ruby/init.h"


VALUE hd_mHeddle, hd_eError;

__attribute__((visibility("default"))) void Init_heddle_native(void)
{
    rb_ext_ractor_safe(true);
    hd_mHeddle = rb_define_module("Heddle");
    hd_eError = rb_define_class_under(hd_mHeddle, "Error", rb_eStandardError);
#define CALL(name) hd_init_##name();
    HD_INITS(CALL)
#undef CALL
}
