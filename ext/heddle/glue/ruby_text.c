/* See ruby_text.h. */
#include "ruby_text.h"

#include <string.h>

static bool says(VALUE object, const char *what)
{
    VALUE text = rb_inspect(object);
    return strstr(StringValueCStr(text), what) != NULL;
}

bool hd_resumes_another(VALUE fiber)
{
    return says(fiber, " by resuming)");
}

bool hd_fiber_runs(VALUE fiber)
{
    return says(fiber, "(resumed)>") || says(fiber, "(suspended by resuming)>");
}

bool hd_thread_in_system_call(VALUE thread)
{
    VALUE status = rb_funcall(thread, rb_intern("status"), 0);
    return !RB_TYPE_P(status, T_STRING) || strcmp(StringValueCStr(status), "run") != 0;
}
