/* See ruby_internals.h. */
#include "ruby_internals.h"

#include <ruby/debug.h>
#include <ruby/encoding.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "caught.h"

/* -- the insides of an IO -------------------------------------------------------------------------------------- */

#ifdef HAVE_RB_IO_T_WBUF /* public up to Ruby 4.0, every member marked as deprecated */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* The sizes that Ruby uses; the second one is for an IO that converts the bytes that it reads. */
enum { READ_BUFFER_MIN = 8192, CONVERTED_BUFFER_MIN = 128 * 1024 };

#define PUT_BACK "heddle_put_back" /* true: its read buffer has received bytes of a read that was ended */

static bool some_were_put_back; /* of any IO, at any time */

void hd_io_take_over(VALUE io)
{
    if (RFILE(io)->fptr) RFILE(io)->fptr->self = io;
}

bool hd_io_flushes(VALUE io, const void *bytes)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    const char *start = fptr ? fptr->wbuf.ptr : NULL;
    return start && (const char *)bytes >= start && (const char *)bytes < start + fptr->wbuf.capa;
}

bool hd_io_reads_ahead(VALUE io, const void *bytes)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return fptr && bytes == fptr->rbuf.ptr;
}

size_t hd_io_filled_meanwhile(VALUE io, const void *bytes)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || bytes != fptr->rbuf.ptr || fptr->rbuf.len <= 0) return 0;
    memmove(fptr->rbuf.ptr, fptr->rbuf.ptr + fptr->rbuf.off, (size_t)fptr->rbuf.len);
    fptr->rbuf.off = 0;
    return (size_t)fptr->rbuf.len;
}

void *hd_io_write_buffer(VALUE io, size_t *size)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    *size = (size_t)fptr->wbuf.len;
    return fptr->wbuf.ptr + fptr->wbuf.off;
}

void hd_io_flushed(VALUE io, size_t count)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    fptr->wbuf.off += (int)count;
    fptr->wbuf.len -= (int)count;
    if (fptr->wbuf.len == 0) fptr->wbuf.off = 0;
}

bool hd_io_has_to_flush(VALUE io)
{
    return RFILE(io)->fptr && RFILE(io)->fptr->wbuf.len > 0;
}

VALUE hd_io_write_lock(VALUE io)
{
    return RFILE(io)->fptr->write_lock;
}

bool hd_io_is_being_written(VALUE io)
{
    VALUE lock = RFILE(io)->fptr ? RFILE(io)->fptr->write_lock : 0;
    if (!RTEST(lock) || !RTEST(rb_mutex_locked_p(lock))) return false;
    return !RTEST(rb_funcallv(lock, rb_intern("owned?"), 0, NULL));
}

static VALUE buffer_again(VALUE io)
{
    RFILE(io)->fptr->mode &= ~FMODE_SYNC;
    return Qnil;
}

/* Gives the IO a new lock for writing. A Mutex of Heddle's would do, but a signal's handler could not lock it. */
void hd_io_forget_writer(VALUE io, VALUE (*write_nothing)(VALUE io))
{
    rb_io_t *fptr = RFILE(io)->fptr;
    rb_gc_register_mark_object(fptr->write_lock); /* its memory refers to fibers that may be freed before it */
    fptr->write_lock = Qnil;
    if (fptr->fd < 0 || !(fptr->mode & FMODE_WRITABLE)) return;
    if (fptr->mode & FMODE_SYNC) {
        write_nothing(io);
        return;
    }
    fptr->mode |= FMODE_SYNC;
    rb_ensure(write_nothing, io, buffer_again, io);
}

bool hd_io_has_room(VALUE io, size_t size)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->mode & (FMODE_SYNC | FMODE_TTY)) return false;
    return fptr->wbuf.ptr && (size_t)fptr->wbuf.len + size < (size_t)fptr->wbuf.capa;
}

bool hd_io_writes_bytes(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->encs.enc2 || fptr->encs.ecflags) return false;
    return !fptr->encs.enc || fptr->encs.enc == rb_ascii8bit_encoding();
}

bool hd_io_converts(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return !fptr || fptr->encs.enc2 || fptr->encs.ecflags;
}

bool hd_io_reads_ascii(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return fptr && rb_enc_asciicompat(fptr->encs.enc ? fptr->encs.enc : rb_default_external_encoding());
}

bool hd_io_has_read_nothing(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0 || fptr->wbuf.len) return false;
    return !fptr->rbuf.len && !fptr->cbuf.len && !fptr->readconv && !fptr->tied_io_for_writing;
}

bool hd_io_is_plain(VALUE io, bool reads)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0 || !NIL_P(fptr->pathv) || fptr->wbuf.len) return false;
    if (reads) return hd_io_has_read_nothing(io);
    return fptr->mode & FMODE_SYNC && (!fptr->rbuf.len || fptr->mode & FMODE_DUPLEX) && hd_io_writes_bytes(io);
}

static size_t read_buffer_min(const rb_io_t *fptr)
{
    return fptr->encs.enc2 || fptr->mode & FMODE_TEXTMODE ? CONVERTED_BUFFER_MIN : READ_BUFFER_MIN;
}

size_t hd_io_read_buffer_size(VALUE io)
{
    const rb_io_t *fptr = RFILE(io)->fptr;
    return fptr->rbuf.ptr ? (size_t)fptr->rbuf.capa : read_buffer_min(fptr);
}

/* Makes room in the read buffer. It has room already, unless another reader has filled it meanwhile. */
static void make_room(rb_io_t *fptr, size_t size)
{
    size_t there = (size_t)fptr->rbuf.len, least = read_buffer_min(fptr);
    size_t capacity = there + size < least ? least : there + size;
    char *bytes = fptr->rbuf.ptr;
    if (!bytes || (size_t)fptr->rbuf.capa < there + size) {
        fptr->rbuf.ptr = ALLOC_N(char, capacity); /* the old one is not freed: a thread may be reading into it */
        fptr->rbuf.capa = (int)capacity;
    }
    if (there) memmove(fptr->rbuf.ptr, bytes + fptr->rbuf.off, there);
    fptr->rbuf.off = 0;
}

void hd_io_fill(VALUE io, const char *bytes, size_t size)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    make_room(fptr, size);
    memcpy(fptr->rbuf.ptr, bytes, size);
    fptr->rbuf.len = (int)size;
}

void hd_io_put_back(VALUE io, const char *bytes, size_t size)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0 || size == 0) return;
    make_room(fptr, size);
    memcpy(fptr->rbuf.ptr + fptr->rbuf.len, bytes, size);
    fptr->rbuf.len += (int)size;
    if (OBJ_FROZEN(io)) return;
    some_were_put_back = true;
    rb_ivar_set(io, rb_intern(PUT_BACK), Qtrue);
}

bool hd_io_has_put_back(VALUE io)
{
    return some_were_put_back && !NIL_P(rb_attr_get(io, rb_intern(PUT_BACK))) && RFILE(io)->fptr &&
           RFILE(io)->fptr->rbuf.len > 0;
}

int hd_io_descriptor(VALUE io)
{
    return RFILE(io)->fptr ? RFILE(io)->fptr->fd : -1;
}

int hd_io_mode(VALUE io)
{
    return RFILE(io)->fptr->mode;
}

void hd_io_set_readable(VALUE io, bool readable)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0) return;
    if (readable) fptr->mode |= FMODE_READABLE;
    else fptr->mode &= ~FMODE_READABLE;
}

hd_hidden_io hd_io_hide(VALUE io)
{
    rb_io_t *fptr = RFILE(io)->fptr;
    if (!fptr || fptr->fd < 0) return (hd_hidden_io){0};
    hd_hidden_io hidden = {.io = io, .insides = fptr, .fd = fptr->fd, .mode = fptr->mode};
    fptr->mode &= ~FMODE_READWRITE;
    fptr->fd = -1;
    return hidden;
}

void hd_io_show(const hd_hidden_io *hidden)
{
    if (!hidden->insides) return;
    rb_io_t *fptr = RFILE(hidden->io)->fptr;
    if (fptr == hidden->insides && fptr->fd < 0) {
        fptr->fd = hidden->fd;
        fptr->mode |= hidden->mode & FMODE_READWRITE;
    }
    else if (!(hidden->mode & FMODE_EXTERNAL)) {
        close(hidden->fd);
    }
}

#else

/* The answer of each function where Ruby shows no insides. */
#define SAYS(answer, function) function { return answer; }

SAYS(false, bool hd_io_flushes(VALUE io, const void *bytes))
SAYS(false, bool hd_io_reads_ahead(VALUE io, const void *bytes))
SAYS(0, size_t hd_io_filled_meanwhile(VALUE io, const void *bytes))
SAYS((*size = 0, NULL), void *hd_io_write_buffer(VALUE io, size_t *size))
SAYS(false, bool hd_io_has_to_flush(VALUE io))
SAYS(Qnil, VALUE hd_io_write_lock(VALUE io))
SAYS(false, bool hd_io_is_being_written(VALUE io))
SAYS(false, bool hd_io_has_room(VALUE io, size_t size))
SAYS(false, bool hd_io_writes_bytes(VALUE io))
SAYS(true, bool hd_io_converts(VALUE io))
SAYS(false, bool hd_io_reads_ascii(VALUE io))
SAYS(false, bool hd_io_is_plain(VALUE io, bool reads))
SAYS(false, bool hd_io_has_read_nothing(VALUE io))
SAYS(0, size_t hd_io_read_buffer_size(VALUE io))
SAYS(false, bool hd_io_has_put_back(VALUE io))
SAYS(rb_io_mode(io), int hd_io_mode(VALUE io))
SAYS((hd_hidden_io){0}, hd_hidden_io hd_io_hide(VALUE io))

int hd_io_descriptor(VALUE io)
{
    if (!RFILE(io)->fptr || RTEST(rb_io_closed_p(io))) return -1;
    return rb_io_descriptor(io);
}

void hd_io_take_over(VALUE io) {}
void hd_io_flushed(VALUE io, size_t count) {}
void hd_io_forget_writer(VALUE io, VALUE (*write_nothing)(VALUE io)) {}
void hd_io_fill(VALUE io, const char *bytes, size_t size) {}
void hd_io_put_back(VALUE io, const char *bytes, size_t size) {}
void hd_io_set_readable(VALUE io, bool readable) {}
void hd_io_show(const hd_hidden_io *hidden) {}
#endif

/* -- what only an inspect string says -------------------------------------------------------------------------- */

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

/* Does the thread sleep without an end? Thread's own inspect says so; a subclass in the program may have another
 * one. */
static bool sleeps_for_ever(VALUE thread)
{
    VALUE inspect = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern("inspect")));
    VALUE text = rb_funcall(inspect, rb_intern("bind_call"), 1, thread);
    return RTEST(rb_funcall(text, rb_intern("end_with?"), 1, rb_str_new_cstr(" sleep_forever>")));
}

static bool begins_with(VALUE object, const char *method, const char *text)
{
    VALUE string = rb_funcall(object, rb_intern(method), 0);
    return RB_TYPE_P(string, T_STRING) && !strncmp(StringValueCStr(string), text, strlen(text));
}

/* Does the thread run a Ractor? In Ruby 3.3 the path shows it, in others the label. */
static bool is_in_ractor(VALUE thread)
{
    VALUE locations = rb_funcall(thread, rb_intern("backtrace_locations"), 2, INT2FIX(0), INT2FIX(1));
    if (!RB_TYPE_P(locations, T_ARRAY) || RARRAY_LEN(locations) == 0) return true;
    VALUE location = RARRAY_AREF(locations, 0);
    return begins_with(location, "path", "<internal:ractor") || begins_with(location, "label", "Ractor");
}

bool hd_thread_waits_for_ever(VALUE thread)
{
    return sleeps_for_ever(thread) && !is_in_ractor(thread);
}

/* -- the caller of the hook ------------------------------------------------------------------------------------- */

/* A scheduler's class may wrap the hook in this number of methods of its own. */
enum { WRAPPERS_MAX = 32 };

static bool of_ruby_itself(VALUE frame)
{
    static const char internal[] = "<internal:";
    VALUE path = rb_profile_frame_path(frame); /* nil: the method is written in C */
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

bool hd_called_by_read_nonblock(void)
{
    return called_by(is_read_nonblock);
}

bool hd_called_by_io_write(void)
{
    return called_by(is_io_write);
}

bool hd_called_by_wait(void)
{
    VALUE frames[2];
    if (rb_profile_frames(0, 2, frames, NULL) < 2) return false;
    VALUE name = rb_profile_frame_method_name(frames[1]); /* the name of the hook's caller */
    return RB_TYPE_P(name, T_STRING) && !strncmp(StringValueCStr(name), "wait", strlen("wait"));
}

bool hd_ruby_moves_threads(void)
{
    return says(rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION")), " +MN");
}

/* -- who holds a Mutex ----------------------------------------------------------------------------------------- */

enum { PLACES_MAX = 64 };

/* What a Mutex notes of its holder. The first word of rb_mutex_t is the rb_fiber_t that holds it; from Ruby 4.0 on
 * it is the number of the holder's execution context, which stands somewhere in rb_fiber_t. */
typedef struct {
    VALUE mutex;
    bool begun, by_fiber;
    size_t count, places[PLACES_MAX]; /* in words: the possible places of the number */
} owner_search;

static struct {
    bool known, by_fiber, left;
    size_t place;
} owners;

uintptr_t hd_mutex_owner(VALUE mutex)
{
    return owners.known ? *(uintptr_t *)RTYPEDDATA_GET_DATA(mutex) : 0;
}

uintptr_t hd_as_owner(VALUE fiber)
{
    uintptr_t *words = RTYPEDDATA_GET_DATA(fiber);
    if (!owners.known) return 0;
    return owners.by_fiber ? (uintptr_t)words : words[owners.place];
}

/* Finds the places in the struct of this fiber that contain what a Mutex notes of it, as they did in the fibers
 * before. */
static VALUE look_at_fiber(RB_BLOCK_CALL_FUNC_ARGLIST(unused, pointer))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    owner_search *search = (void *)pointer;
    VALUE fiber = rb_fiber_current();
    uintptr_t *words = RTYPEDDATA_GET_DATA(fiber);
    size_t size = RTYPEDDATA_EMBEDDED_P(fiber) ? 0 : hd_memory_size(words) / sizeof(*words), count = 0;
    rb_mutex_lock(search->mutex);
    uintptr_t noted = *(uintptr_t *)RTYPEDDATA_GET_DATA(search->mutex);
    rb_mutex_unlock(search->mutex);
    search->by_fiber &= noted == (uintptr_t)words;
    for (size_t i = 0; !search->begun && i < size && count < PLACES_MAX; i++)
        if (words[i] == noted) search->places[count++] = i;
    for (size_t i = 0; search->begun && i < search->count; i++)
        if (search->places[i] < size && words[search->places[i]] == noted) search->places[count++] = search->places[i];
    search->count = count;
    search->begun = true;
    return Qnil;
}

static VALUE look_at_fibers(VALUE pointer)
{
    look_at_fiber(Qnil, pointer, 0, NULL, Qnil);
    for (int i = 0; i < 3; i++) rb_fiber_resume(rb_fiber_new(look_at_fiber, pointer), 0, NULL);
    return Qnil;
}

void hd_leave_owners(void)
{
    owners.left = true;
}

void hd_find_owners(void)
{
    static bool looked;
    if (looked || owners.left) return;
    owner_search search = {.mutex = rb_mutex_new(), .by_fiber = true};
    hd_caught caught;
    hd_catch(look_at_fibers, (VALUE)&search, &caught);
    RB_GC_GUARD(search.mutex);
    hd_go_on_if_interrupted(&caught);
    if (caught.state) return; /* a signal's handler may lock no Mutex */
    looked = true;
    owners.by_fiber = search.by_fiber;
    owners.place = search.places[0];
    owners.known = search.by_fiber || search.count == 1;
}

/* -- what the heap says ---------------------------------------------------------------------------------------- */

/* Exported for the library objspace. Its callbacks must not allocate. */
void rb_objspace_reachable_objects_from(VALUE object, void callback(VALUE, void *), void *data);
void rb_objspace_reachable_objects_from_root(void callback(const char *, VALUE, void *), void *data);

static void add_hidden(VALUE object, void *pointer)
{
    hd_hidden_objects *hidden = pointer;
    if (hidden->count < HD_HIDDEN_MAX && hd_is_hidden(object) && hidden->wanted(object))
        hidden->found[hidden->count++] = object;
}

void hd_find_hidden(VALUE object, hd_hidden_objects *hidden)
{
    hidden->count = 0;
    rb_objspace_reachable_objects_from(object, add_hidden, hidden);
}

typedef struct {
    VALUE ours;
    bool found;
} handler_search;

/* Looks for a handler. The handlers are all the Procs to which Ruby's virtual machine itself refers. */
static void look_for_handler(const char *category, VALUE object, void *pointer)
{
    handler_search *search = pointer;
    if (object != search->ours && !strcmp(category, "vm") && RTEST(rb_obj_is_proc(object))) search->found = true;
}

bool hd_program_handles_signals(VALUE ours)
{
    handler_search search = {.ours = ours};
    rb_objspace_reachable_objects_from_root(look_for_handler, &search);
    return search.found;
}
