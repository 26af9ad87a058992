/* WHERE HEDDLE LOOKS BEHIND RUBY'S BACK: all that it reads of Ruby's structs, of inspect strings, of the frames of its
 * callers and of the heap, because no function tells it. Each part names what would make it superfluous. */
#pragma once

#include "compat.h"

/* -- the insides of an IO (rb_io_t is public up to Ruby 4.0; functions for its buffers and its mode would do) --- */

/* After close_read of an IO with a second one for writing (IO.popen "r+"): Ruby gives the first the insides of the
 * second, but they still name the second, which is closed, and the hooks are called with that. */
void hd_io_take_over(VALUE io);

/* Do these bytes lie in the write buffer of the IO? Ruby 4.0 flushes it by one io_write, and what that leaves over is
 * lost when the IO is closed. */
bool hd_io_flushes(VALUE io, const void *bytes);

/* Are these bytes Ruby's read buffer? */
bool hd_io_reads_ahead(VALUE io, const void *bytes);

/* These bytes are where a read is to go to, after a wait. If that is the read buffer, and another fiber has filled it
 * meanwhile, what is in it still is moved to its beginning, as if it had been read now: so many bytes. Else 0. */
size_t hd_io_filled_meanwhile(VALUE io, const void *bytes);

/* What is in the write buffer now. Other fibers and threads append to it, and move its bytes, whenever this one waits:
 * it is asked for anew after every wait. */
void *hd_io_write_buffer(VALUE io, size_t *size);

/* So many bytes of the write buffer have been written. */
void hd_io_flushed(VALUE io, size_t count);

/* Is there anything in the write buffer? */
bool hd_io_has_to_flush(VALUE io);

/* The Mutex that whoever writes to the IO holds; it is there once something has been written. */
VALUE hd_io_write_lock(VALUE io);

/* Does another fiber hold it? */
bool hd_io_is_being_written(VALUE io);

/* That fiber will never give it back: the IO gets a new one. Ruby makes that when it writes; also two strings of
 * nothing, as the function does, if the IO is not buffered. Without a lock it could not flush the buffer. */
void hd_io_forget_writer(VALUE io, VALUE (*write_nothing)(VALUE io));

/* Does the write buffer take so many bytes without being flushed? */
bool hd_io_has_room(VALUE io, size_t size);

/* Are strings written byte by byte as they are, whatever their encoding? */
bool hd_io_writes_bytes(VALUE io);

/* Is what `read` gives of it no plain copy of the bytes: of another encoding, or with other line ends? */
bool hd_io_converts(VALUE io);

/* Are the lines of this IO told apart by a separator in ASCII? (Ruby refuses others before it reads.) */
bool hd_io_reads_ascii(VALUE io);

/* Can bytes be read from this IO, or else written to it, without Ruby? It is open and has no path, nothing is in its
 * buffers, no converter has begun (it may hold a part of a character, or have met the end), and what is written to it
 * is neither buffered nor converted. */
bool hd_io_is_plain(VALUE io, bool reads);

/* The same of any IO that is to be read. */
bool hd_io_has_read_nothing(VALUE io);

/* Is its buffer for what is read empty? Then its size is told, and hd_io_fill puts so many bytes into it at most. (Ruby
 * makes it when it is used for the first time, and so does hd_io_fill.) */
bool hd_io_read_buffer(VALUE io, size_t *size);
void hd_io_fill(VALUE io, const char *bytes, size_t size);

/* Puts the bytes of a read that was ended behind those in the read buffer, where every method finds them: also those
 * that refuse to read when something is there, see hd_io_has_put_back. If the IO is closed, nobody can read them. */
void hd_io_put_back(VALUE io, const char *bytes, size_t size);
bool hd_io_has_put_back(VALUE io);

/* The number of an open IO, or -1. (One that is hidden is not open.) */
int hd_io_descriptor(VALUE io);

/* FMODE_READABLE and so on of an open IO, also of one that is frozen: that can be closed. */
int hd_io_mode(VALUE io);

/* Sets or clears FMODE_READABLE of an IO, if it is open. */
void hd_io_set_readable(VALUE io, bool readable);

/* An IO that looks closed to all but its closer. */
typedef struct {
    VALUE io;
    void *insides; /* NULL: it is not hidden */
    int fd, mode;
} hd_hidden_io;

/* Hides an open IO. It does nothing where Ruby shows no insides. */
hd_hidden_io hd_io_hide(VALUE io);

/* As it was before, to be closed by Ruby. If it has been opened anew meanwhile, the old file is closed here. */
void hd_io_show(const hd_hidden_io *hidden);

/* -- what only an inspect string says ------------------------------------------------------------------------- */

/* Has the fiber resumed another one, which Heddle may have parked? Ruby strikes that one then, and tells it only here.
 * (A Fiber#resuming? would do: rb_fiber_t has it.) */
bool hd_resumes_another(VALUE fiber);

/* Is this fiber, or one that it has resumed, what its thread runs? One that is abandoned is "suspended", or
 * "terminated". (A Thread#current_fiber would do.) */
bool hd_fiber_runs(VALUE fiber);

/* Is the thread in a call of the system? Then it "sleeps". */
bool hd_thread_in_system_call(VALUE thread);

/* Does the thread wait for a lock, a queue or a thread, without a timeout? Not for a Ractor: of that Ruby says
 * "sleep_forever", too, but another Ractor may wake it. (Of threads that move between native ones Ruby says so in every
 * wait.) */
bool hd_thread_waits_for_ever(VALUE thread);

/* Do the threads of the main Ractor move between native ones (RUBY_MN_THREADS)? Ruby's description of itself tells:
 * the program may have changed the variable since Ruby has looked at it. */
bool hd_ruby_moves_threads(void);

/* -- who holds a Mutex (a Mutex#owner would do) ----------------------------------------------------------------- */

/* What a Mutex notes of the fiber that holds it; 0: nobody does, or Ruby's structs are not as they are known. */
uintptr_t hd_mutex_owner(VALUE mutex);

/* What a Mutex would note of this fiber, which has not ended; or 0. */
uintptr_t hd_as_owner(VALUE fiber);

/* To be called before the first of these, in a fiber. */
void hd_find_owners(void);

/* Nothing is to be known of the structs (HEDDLE_SAFE). Called before hd_find_owners. */
void hd_leave_owners(void);

/* -- who has called the hook ----------------------------------------------------------------------------------- */

/* A read_nonblock of Ruby's own? IO#read_nonblock and ARGF.read_nonblock call the io_read hook exactly as the blocking
 * methods do; it must not wait then. (From Ruby 4.1 on no io_read waits.) */
bool hd_called_by_read_nonblock(void);

/* IO#write? IO#syswrite calls the io_write hook in the same way, but takes a part for an answer. (As above.) */
bool hd_called_by_io_write(void);

/* IO#wait or one of its kin, which return nil when IO#timeout is over? (Asked of Ruby 3.3 only.) */
bool hd_called_by_wait(void);

/* -- what the heap says ---------------------------------------------------------------------------------------- */

/* Does Ruby hide this object? It has no class: the Mutex of an autoload, or of a close; or it is no object of the
 * language: what a throw leaves in errinfo. (From Ruby 4.1 on something else stands where such a one would have a
 * class.) */
static inline bool hd_is_hidden(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && (RB_BUILTIN_TYPE(object) == RUBY_T_IMEMO || !RBASIC_CLASS(object));
}

/* The type of the data that a visible object holds; NULL: it holds none. */
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

/* Finds those that are wanted. (For closer.c, on 3.3 and 3.4: 4.0 wakes the closer by another way.) */
void hd_find_hidden(VALUE object, hd_hidden_objects *hidden);

/* Has the program a handler for a signal, beside this Proc? (No method of Ruby's tells without changing one: a
 * Signal.handler(name) would do.) */
bool hd_program_handles_signals(VALUE ours);
