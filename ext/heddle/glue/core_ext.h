/* What the methods that take the place of Ruby's own share; see lib/heddle/core_ext/replace.rb. */
#ifndef HEDDLE_CORE_EXT_H
#define HEDDLE_CORE_EXT_H

#include <ruby.h>

/* Calls Ruby's own method, whose place the running one (a C method of a module in Heddle::CoreExt) has taken. No block
 * is passed on. `keywords` as for rb_funcallv_kw. */
VALUE hd_call_original(VALUE self, int argc, const VALUE *argv, int keywords);

void hd_init_core_ext(void);

#endif
