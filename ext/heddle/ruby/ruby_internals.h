/* RUBY'S INTERNALS: everything that Heddle reads of Ruby's structs, of inspect strings, of the frames of its callers
 * and of the heap.
 *
 * Problem: no public function of Ruby says these things. Way: this file and its .c read them, and no other file
 * does, apart from fiber_insides.h. Each part names a public function that would make it superfluous. Price: each
 * Ruby version must be checked. Where Ruby does not show a thing, the function has a fixed answer. */
#pragma once

#include "compat.h"

/* -- the insides of an IO (rb_io_t is public up to Ruby 4.0; functions for its buffers and its mode would do) --- */

/* Repairs an IO with a second one for writing (IO.popen "r+") after its close_read. Ruby gives the first the insides
 * of the second, but they still name the second, which is closed, and Ruby calls the hooks with that. */
void hd_io_take_over(VALUE io);

/* Are these bytes in the write buffer of the IO? Ruby 4.0 flushes it by one io_write, and bytes that this leaves in
 * the buffer are lost when the IO is closed. */
bool hd_io_flushes(VALUE io, const void *bytes);

/* Are these bytes Ruby's read buffer? */
bool hd_io_reads_ahead(VALUE io, const void *bytes);

/* Finds out, after a wait, whether another fiber has filled the read buffer. bytes: where a read will put its bytes.
 * If that is the read buffer, and it was filled meanwhile, its bytes are moved to its beginning, as if they had been
 * read now. Returns their number, else 0. */
size_t hd_io_filled_meanwhile(VALUE io, const void *bytes);

/* Returns the current bytes of the write buffer. Other fibers and threads append to it, and move its bytes, whenever
 * this one waits. So call this again after every wait. */
void *hd_io_write_buffer(VALUE io, size_t *size);

/* Removes this number of bytes from the write buffer: they have been written. */
void hd_io_flushed(VALUE io, size_t count);

/* Are bytes in the write buffer? */
bool hd_io_has_to_flush(VALUE io);

/* The Mutex that a fiber holds while it writes to the IO. It exists once something has been written. */
VALUE hd_io_write_lock(VALUE io);

/* Does another fiber hold the write lock? */
bool hd_io_is_being_written(VALUE io);

/* Gives the IO a new write lock, because the fiber that holds the old one will never unlock it. Ruby makes a lock
 * when an IO without a buffer is written to, even with two empty strings. write_nothing makes such a write, and the
 * IO counts as unbuffered meanwhile. Without a lock Ruby could not flush the buffer. */
void hd_io_forget_writer(VALUE io, VALUE (*write_nothing)(VALUE io));

/* Does the write buffer take this number of bytes without being flushed? */
bool hd_io_has_room(VALUE io, size_t size);

/* Are strings written byte by byte, whatever their encoding? */
bool hd_io_writes_bytes(VALUE io);

/* Does `read` of it convert the bytes, so that the result has another encoding or other line ends? */
bool hd_io_converts(VALUE io);

/* Are the lines of this IO separated by ASCII? Ruby refuses other separators before it reads. */
bool hd_io_reads_ascii(VALUE io);

/* Can bytes be read from this IO, or else written to it, without Ruby? The IO must be open and have no path, and its
 * buffers must be empty. No converter may have begun (it may hold a part of a character, or have met the end). Bytes
 * that are written to it must be neither buffered nor converted. */
bool hd_io_is_plain(VALUE io, bool reads);

/* Have all bytes that were read from the IO been taken? Its buffers are empty, and no converter has begun. For any
 * IO that will be read, even one with a path. */
bool hd_io_has_read_nothing(VALUE io);

/* Returns the size of the read buffer of an IO that has read nothing. hd_io_fill puts at most this number of bytes into
 * it. Ruby makes the buffer at its first use, and so does hd_io_fill. */
size_t hd_io_read_buffer_size(VALUE io);
void hd_io_fill(VALUE io, const char *bytes, size_t size);

/* Puts the bytes of a read that was ended behind the bytes of the read buffer. Every method finds them there, also
 * methods that refuse to read when the buffer has bytes; see hd_io_has_put_back. If the IO is closed, nobody can
 * read them. */
void hd_io_put_back(VALUE io, const char *bytes, size_t size);
bool hd_io_has_put_back(VALUE io);

/* Returns the number of an open IO, or -1. A hidden IO is not open. */
int hd_io_descriptor(VALUE io);

/* Returns FMODE_READABLE and so on of an open IO, also of a frozen one, because that can be closed. */
int hd_io_mode(VALUE io);

/* Sets or clears FMODE_READABLE of an IO, if it is open. */
void hd_io_set_readable(VALUE io, bool readable);

/* An IO that looks closed to all but its closer. */
typedef struct {
    VALUE io;
    void *insides; /* NULL: the IO is not hidden */
    int fd, mode;
} hd_hidden_io;

/* Hides an open IO. It does nothing where Ruby shows no insides. */
hd_hidden_io hd_io_hide(VALUE io);

/* Shows the IO as before, so that Ruby closes it. If it has been opened anew meanwhile, the old file is closed here. */
void hd_io_show(const hd_hidden_io *hidden);

/* -- from inspect strings ------------------------------------------------------------------------------------- */

/* Has the fiber resumed another one, which Heddle may have parked? Ruby raises in that one then, and shows it only
 * in this string. A Fiber#resuming? would do: rb_fiber_t has it. */
bool hd_resumes_another(VALUE fiber);

/* Does the thread run this fiber, or a fiber that it has resumed? An abandoned one is "suspended", or "terminated".
 * A Thread#current_fiber would do. */
bool hd_fiber_runs(VALUE fiber);

/* Is the thread in a system call? Then it "sleeps". */
bool hd_thread_in_system_call(VALUE thread);

/* Does the thread wait for a lock, a queue or a thread, without a timeout? A wait for a Ractor does not count. Ruby
 * says "sleep_forever" then, too, but another Ractor may end it. Of threads that move between native ones Ruby says
 * so in every wait. */
bool hd_thread_waits_for_ever(VALUE thread);

/* Do the threads of the main Ractor move between native ones (RUBY_MN_THREADS)? Ruby's description of itself shows
 * it. The program may have changed the variable since Ruby has read it. */
bool hd_ruby_moves_threads(void);

/* -- who holds a Mutex (a Mutex#owner would do) ----------------------------------------------------------------- */

/* Returns what a Mutex notes of the fiber that holds it; 0: no fiber holds it, or Ruby's structs are not the known
 * ones. */
uintptr_t hd_mutex_owner(VALUE mutex);

/* Returns what a Mutex would note of this fiber, which has not ended; or 0. */
uintptr_t hd_as_owner(VALUE fiber);

/* Prepares these functions. Must be called before the first of them, in a fiber. */
void hd_find_owners(void);

/* Switches these functions off (HEDDLE_SAFE). Called before hd_find_owners. */
void hd_leave_owners(void);

/* -- the caller of the hook ----------------------------------------------------------------------------------- */

/* Was the hook called by a read_nonblock of Ruby's own? IO#read_nonblock and ARGF.read_nonblock call the io_read
 * hook exactly as the blocking methods do, and it must not wait then. From Ruby 4.1 on no io_read waits. */
bool hd_called_by_read_nonblock(void);

/* Was the hook called by IO#write? IO#syswrite calls the io_write hook in the same way, but accepts that only a part
 * is written. From Ruby 4.1 on no io_write waits. */
bool hd_called_by_io_write(void);

/* Was the hook called by IO#wait or a similar method, which returns nil when IO#timeout is over? Asked only for Ruby
 * 3.3. */
bool hd_called_by_wait(void);

/* -- from the heap -------------------------------------------------------------------------------------------- */

/* Does Ruby hide this object? Then it has no class. Such objects are the Mutex of an autoload or of a close, and the
 * object that a throw leaves in errinfo, which programs cannot get. From Ruby 4.1 on another value stands where such
 * an object would have a class. */
static inline bool hd_is_hidden(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && (RB_BUILTIN_TYPE(object) == RUBY_T_IMEMO || !RBASIC_CLASS(object));
}

/* Returns the type of the data that a visible object holds; NULL: it holds none. */
static inline const rb_data_type_t *hd_data_type(VALUE object)
{
    if (!RB_TYPE_P(object, T_DATA) || hd_is_hidden(object) || !RTYPEDDATA_P(object)) return NULL;
    return RTYPEDDATA_TYPE(object);
}

enum { HD_HIDDEN_MAX = 16 };

/* Hidden objects that another one refers to, also from its stack. */
typedef struct {
    bool (*wanted)(VALUE object);
    VALUE found[HD_HIDDEN_MAX];
    int count;
} hd_hidden_objects;

/* Finds the hidden objects that are wanted. For closer.c, on 3.3 and 3.4: 4.0 wakes the closer in another way. */
void hd_find_hidden(VALUE object, hd_hidden_objects *hidden);

/* Has the program a handler for a signal, besides this Proc? Ruby's methods say this only by changing a handler; a
 * Signal.handler(name) would do. */
bool hd_program_handles_signals(VALUE ours);
