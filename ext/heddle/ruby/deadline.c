/* See deadline.h. */
#include "deadline.h"

enum { LIMIT_MAX = 1000 * 1000 * 1000 }; /* seconds: 30 years */

int64_t hd_deadline_from(VALUE timeout)
{
    if (NIL_P(timeout)) return HD_NO_DEADLINE;
    struct timespec interval = rb_time_timespec_interval(timeout);
    if (interval.tv_sec >= INT64_MAX / HD_NS_PER_SECOND - 1) return HD_NO_DEADLINE;
    int64_t interval_ns = interval.tv_sec * HD_NS_PER_SECOND + interval.tv_nsec;
    /* Whoever sleeps for the rest of a time must get past its end, by a clock that stands still meanwhile, too. */
    if (interval_ns == 0 && RB_FLOAT_TYPE_P(timeout) && RFLOAT_VALUE(timeout) > 0) interval_ns = 1;
    return hd_clock_deadline(hd_clock_now(), interval_ns);
}

VALUE hd_io_timeout(VALUE io)
{
    VALUE timeout = rb_io_timeout(io);
    return RTEST(timeout) ? timeout : Qnil;
}

int64_t hd_deadline_of_limit(VALUE limit)
{
    if (NIL_P(limit)) return HD_NO_DEADLINE;
    if (RB_TYPE_P(limit, T_BIGNUM)) return RBIGNUM_POSITIVE_P(limit) ? HD_NO_DEADLINE : hd_clock_now();
    double seconds = rb_num2dbl(limit); /* to_f, or TypeError */
    /* infinity, too, and a value that is not a number, as in plain Ruby */
    if (!(seconds <= LIMIT_MAX)) return HD_NO_DEADLINE;
    if (seconds <= 0) return hd_clock_now();
    return hd_deadline_from(RB_FIXNUM_P(limit) ? limit : DBL2NUM(seconds));
}
