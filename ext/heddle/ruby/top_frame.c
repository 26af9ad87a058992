/* See top_frame.h. */
#include "top_frame.h"

#include <ruby/debug.h>
#include <string.h>

#include "caught.h"

static VALUE exempt; /* an Array of the beginnings of paths */

static bool begins_with(VALUE string, const char *prefix, size_t size)
{
    return (size_t)RSTRING_LEN(string) >= size && !memcmp(RSTRING_PTR(string), prefix, size);
}

/* Classes whose methods in C only compute. They look at interrupts at their ends, and where other threads may run. A
 * name with colons at its end stands for all classes in it. */
static const char *const computing[] = {
    "Array", "BigDecimal", "CGI::Escape", "Class", "Comparable", "Complex", "Date", "DateTime", "Digest::",
    "ERB::Escape", "Encoding", "Encoding::Converter", "Enumerable", "Exception", "FalseClass", "Float", "Hash",
    "Integer", "JSON::Ext::", "Marshal", "MatchData", "Math", "NilClass", "Numeric", "Psych::", "Random", "Range",
    "Rational", "Regexp", "Set", "String", "StringIO", "StringScanner", "Struct", "Symbol", "Time", "TrueClass", NULL,
};

/* Such methods of Kernel and of Process, which have others, too. */
static const char *const computing_methods[] = {
    "Array", "Complex", "Float", "Hash", "Integer", "Rational", "String", "class", "clock_gettime", "clone", "dup",
    "extend", "format", "freeze", "hash", "inspect", "instance_of?", "instance_variable_get", "instance_variable_set",
    "is_a?", "kind_of?", "object_id", "public_send", "rand", "respond_to?", "singleton_class", "sprintf", "to_s", NULL,
};

static bool is_one_of(const char *const *names, VALUE string)
{
    for (; *names; names++) {
        size_t size = strlen(*names);
        bool whole = size == (size_t)RSTRING_LEN(string) || (*names)[size - 1] == ':';
        if (whole && begins_with(string, *names, size)) return true;
    }
    return false;
}

/* Does this method in C only compute, so that it is as good as Ruby code? */
static bool only_computes(VALUE frame)
{
    VALUE class = rb_profile_frame_classpath(frame);
    if (!RB_TYPE_P(class, T_STRING)) return false;
    if (is_one_of((const char *const[]){"Kernel", "Process", NULL}, class))
        return is_one_of(computing_methods, rb_profile_frame_method_name(frame));
    return is_one_of(computing, class);
}

static bool is_exempt(VALUE frame)
{
    VALUE path = rb_profile_frame_absolute_path(frame);
    if (!RB_TYPE_P(path, T_STRING)) return false; /* code of an eval */
    for (long i = 0; i < RARRAY_LEN(exempt); i++) {
        VALUE prefix = rb_ary_entry(exempt, i);
        if (begins_with(path, RSTRING_PTR(prefix), (size_t)RSTRING_LEN(prefix))) return true;
    }
    return false;
}

/* Does a block in C run on top of this frame, which rb_profile_frames lists first? Then the running method, if any, has
 * another name than the method of the frame. */
static bool is_below_top(VALUE frame)
{
    VALUE method = rb_profile_frame_method_name(frame);
    ID running = rb_frame_this_func();
    if (!RB_TYPE_P(method, T_STRING)) return false;
    return !running || !RTEST(rb_str_equal(rb_id2str(running), method));
}

static bool is_method_in_c(VALUE frame)
{
    static const char c_method[] = "<cfunc>";
    VALUE path = rb_profile_frame_absolute_path(frame);
    return RB_TYPE_P(path, T_STRING) && begins_with(path, c_method, sizeof(c_method) - 1);
}

/* Is the frame one of a method in C, or of a part of Ruby that is written in Ruby? Then sets *computes: it only
 * computes, and the code that has called it decides. */
static bool is_of_ruby(VALUE frame, bool *computes)
{
    static const char internal[] = "<internal:";
    static const char *const harmless[] = {"<internal:array>", "<internal:numeric>", "<internal:kernel>", NULL};
    if (is_method_in_c(frame)) {
        *computes = only_computes(frame);
        return true;
    }
    VALUE path = rb_profile_frame_path(frame);
    bool has_path = RB_TYPE_P(path, T_STRING);
    *computes = has_path && is_one_of(harmless, path);
    return !has_path || begins_with(path, internal, sizeof(internal) - 1);
}

hd_top hd_top_frame(int skipped)
{
    enum { DEPTH = 10 };
    VALUE frames[DEPTH];
    int count = rb_profile_frames(0, DEPTH, frames, NULL); /* its first argument skips nothing: Ruby 3.3 to 4.0 */
    for (int i = skipped; i < count; i++) {
        bool computes = false;
        if (is_of_ruby(frames[i], &computes)) {
            if (!computes) return HD_TOP_IS_C;
            continue;
        }
        if (i == 0 && is_below_top(frames[i])) return HD_TOP_IS_C;
        return is_exempt(frames[i]) ? HD_TOP_IS_EXEMPT : HD_TOP_COMPUTES;
    }
    return HD_TOP_IS_C;
}

/* -- the gem ffi ------------------------------------------------------------------------------------------------- */

/* Returns FFI::Library, which a module extends to get its functions, or false if the gem is not loaded. */
static VALUE ffi_library(void)
{
    ID ffi = rb_intern("FFI"), library = rb_intern("Library");
    if (!rb_const_defined(rb_cObject, ffi) || !NIL_P(rb_autoload_p(rb_cObject, ffi))) return Qfalse;
    VALUE module = rb_const_get(rb_cObject, ffi);
    bool known = RB_TYPE_P(module, T_MODULE) && rb_const_defined_at(module, library);
    return known ? rb_const_get_at(module, library) : Qfalse;
}

/* Is the frame a call of a function by the gem? A class without a name may be anything. */
static bool is_foreign_call(VALUE frame, VALUE library)
{
    if (!is_method_in_c(frame)) return false;
    VALUE class = rb_profile_frame_classpath(frame);
    if (!RB_TYPE_P(class, T_STRING)) return false;
    if (begins_with(class, "FFI::", 5) || begins_with(class, "#", 1)) return true;
    return RTEST(rb_obj_is_kind_of(rb_path_to_class(class), library));
}

static VALUE look_for_foreign_call(VALUE library)
{
    int count, size = 128;
    VALUE buffer = Qnil, *frames = NULL;
    do {
        size *= 2;
        frames = rb_alloc_tmp_buffer2(&buffer, size, sizeof(*frames));
        count = rb_profile_frames(0, size, frames, NULL);
    } while (count == size);
    VALUE found = Qfalse;
    for (int i = 0; i < count && !found; i++)
        if (is_foreign_call(frames[i], library)) found = Qtrue;
    rb_free_tmp_buffer(&buffer);
    return found;
}

bool hd_in_foreign_call(void)
{
    VALUE library = ffi_library();
    if (!library) return false;
    hd_caught caught; /* a class may have another name by now */
    VALUE found = hd_catch(look_for_foreign_call, library, &caught);
    hd_go_on_if_interrupted(&caught);
    return caught.state || RTEST(found);
}

void hd_exempt(VALUE prefix)
{
    if (!RTEST(rb_ary_includes(exempt, prefix))) rb_ary_push(exempt, rb_str_new_frozen(prefix));
}

void hd_init_top_frame(void)
{
    exempt = rb_ary_new();
    rb_gc_register_mark_object(exempt);
}
