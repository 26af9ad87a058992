/* See deadline.h. */
#include "deadline.h"

enum { LIMIT_MAX = 1000 * 1000 * 1000 }; /* seconds: 30 years */

int64_t hd_deadline_from(VALUE timeout)
{
    if (NIL_P(timeout)) return HD_NO_DEADLINE;
    struct timespec interval = rb_time_timespec_interval(timeout);
    if (interval.tv_sec >= INT64_MAX / HD_NS_PER_SECOND - 1) return HD_NO_DEADLINE;
    return hd_clock_deadline(hd_clock_now(), interval.tv_sec * HD_NS_PER_SECOND + interval.tv_nsec);
}

int64_t hd_deadline_of_limit(VALUE limit)
{
    if (NIL_P(limit)) return HD_NO_DEADLINE;
    if (!RTEST(rb_obj_is_kind_of(limit, rb_cNumeric))) limit = DBL2NUM(rb_num2dbl(limit)); /* to_f, or TypeError */
    if (RB_TYPE_P(limit, T_BIGNUM)) return RBIGNUM_POSITIVE_P(limit) ? HD_NO_DEADLINE : hd_clock_now();
    if (RB_INTEGER_TYPE_P(limit) && FIX2LONG(limit) > LIMIT_MAX) return HD_NO_DEADLINE;
    if (RB_FLOAT_TYPE_P(limit) && RFLOAT_VALUE(limit) > LIMIT_MAX) return HD_NO_DEADLINE; /* also infinity */
    bool over = RB_FLOAT_TYPE_P(limit) ? !(RFLOAT_VALUE(limit) > 0) : RTEST(rb_funcall(limit, '<', 1, INT2FIX(0)));
    return over ? hd_clock_now() : hd_deadline_from(limit);
}
