/* IO#read_nonblock and ARGF.read_nonblock call the io_read hook exactly as the blocking methods do (Ruby up to 4.0).
 * A hook that is about to wait looks at who called it, so that those methods need no other code around them. */
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

static bool is_read_nonblock(VALUE frame)
{
    static const char read_nonblock[] = "read_nonblock";
    VALUE name = rb_profile_frame_method_name(frame);
    return RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) == (long)strlen(read_nonblock) &&
           !memcmp(RSTRING_PTR(name), read_nonblock, strlen(read_nonblock)) && of_ruby_itself(frame);
}

bool hd_would_block_wanted(void)
{
    VALUE frames[WRAPPERS_MAX];
    int count = rb_profile_frames(0, 2, frames, NULL); /* the hook itself, and its caller */
    if (count < 2) return false;
    if (of_ruby_itself(frames[1])) return is_read_nonblock(frames[1]);

    count = rb_profile_frames(0, WRAPPERS_MAX, frames, NULL);
    for (int i = 2; i < count; i++) {
        if (is_read_nonblock(frames[i])) return true;
    }
    return false;
}
