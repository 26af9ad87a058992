/* IO#read_nonblock and ARGF.read_nonblock call the io_read hook exactly as the blocking methods do, and IO#syswrite
 * the io_write hook as IO#write does (Ruby up to 4.0). A hook that is about to wait looks at who called it, so that
 * those methods need no other code around them. */
#include "would_block.h"

#include <ruby/debug.h>

/* How far a scheduler's class may wrap the hook in methods of its own. */
enum { WRAPPERS_MAX = 32 };

static bool of_ruby_itself(VALUE frame)
{
    static const char internal[] = "<internal:";
    VALUE path = rb_profile_frame_path(frame); /* nil: written in C */
    return NIL_P(path) || !strncmp(RSTRING_PTR(path), internal, strlen(internal));
}

static bool equal(VALUE string, const char *expected)
{
    return RB_TYPE_P(string, T_STRING) && RSTRING_LEN(string) == (long)strlen(expected) &&
           !memcmp(RSTRING_PTR(string), expected, strlen(expected));
}

static bool is_read_nonblock(VALUE frame)
{
    return equal(rb_profile_frame_method_name(frame), "read_nonblock") && of_ruby_itself(frame);
}

static bool is_io_write(VALUE frame)
{
    return equal(rb_profile_frame_method_name(frame), "write") && equal(rb_profile_frame_classpath(frame), "IO");
}

static bool called_by(bool (*is_wanted)(VALUE frame))
{
    VALUE frames[WRAPPERS_MAX];
    int count = rb_profile_frames(0, 2, frames, NULL); /* the hook itself, and its caller */
    if (count < 2) return false;
    if (of_ruby_itself(frames[1])) return is_wanted(frames[1]);

    count = rb_profile_frames(0, WRAPPERS_MAX, frames, NULL);
    for (int i = 2; i < count; i++) {
        if (is_wanted(frames[i])) return true;
    }
    return false;
}

bool hd_would_block_wanted(void)
{
    return called_by(is_read_nonblock);
}

bool hd_called_by_io_write(void)
{
    return called_by(is_io_write);
}
