/* Reads and writes of an IO: the system call first, and a wait only when it would block. transfer.c says why. */
#pragma once

#include <errno.h>

#include "fibers/scheduler.h"
#include "os/read_write.h"

typedef struct {
    hd_scheduler *scheduler;
    hd_direction direction;
    VALUE io, buffer;
    size_t length, offset; /* into the buffer; length 0: one transfer, of any size */
    off_t from;            /* in the file, or HD_NO_OFFSET */
    int fd;
    hd_file_kind kind;
    bool in_part;     /* a part has been moved: the next step may wait for the disk, but not until the IO is ready */
    bool reads_ahead; /* into Ruby's read buffer */
    bool flushes;     /* writes Ruby's write buffer */
    bool accepts;     /* connections, not bytes */
    bool amid;        /* a part was read, which is kept nowhere else */
    bool others_ran;  /* since Ruby has looked into its read buffer */
    bool gives_up;    /* the caller must not wait: -EAGAIN is its result */
    size_t room;      /* for bytes that may be received with the end of a wait, 0: none */
    bool received;    /* the last wait has received bytes: see hd_transfer_run */
    ssize_t moved;    /* number of bytes, 0 at the end, or -errno */
    int64_t deadline_ns; /* of the waits, from IO#timeout; 0 before the first one */
    bool asks;        /* the next read is a request of the ring only to share its call: bytes may be there already */
    bool is_alone;    /* a write of the ring that shares its system call with no other request so far */
    uint64_t answers; /* reactor->answers when it began */
} hd_transfer;

/* Makes the operation if that needs no wait. Returns its result; -EAGAIN: it must wait first. */
typedef ssize_t hd_attempt(hd_transfer *call, void *argument);

/* The result of an attempt that must be left to Ruby's own method. */
enum { HD_LEFT_TO_RUBY = -EINPROGRESS };

static inline bool hd_is_left_to_ruby(ssize_t result)
{
    return result == HD_LEFT_TO_RUBY || result == HD_TERMINAL_WAITS; /* see hd_rw_try */
}

/* Makes attempts until one of them need not wait, and returns its result. It waits after each that would have to, and
 * before the first one, too, if a wait is expected. Otherwise the other fibers run before the first one if the turn of
 * this fiber is used up. A wait may receive at most call->room bytes (call->received): io_uring reads them as soon as
 * they arrive. The attempt must take them, because they are kept nowhere else. It must do so even if the IO was closed
 * meanwhile, if the fiber can go on with them. */
ssize_t hd_transfer_run(hd_transfer *call, bool wait, hd_attempt *attempt, void *argument);

/* Returns the memory into which bytes are read first. A string then gets the size of the bytes that were received, and
 * a fiber that waits holds no memory. It is empty whenever another fiber may run. It belongs to the scheduler, not to
 * the native thread, because a Ruby thread may go on in another native thread after a wait. */
enum { HD_READ_MEMORY_SIZE = 16 * 1024 };
char *hd_read_memory(hd_scheduler *scheduler);

/* The size of the pieces in which a file is moved; the other fibers run after each piece. A file that the kernel has in
 * memory never makes the caller wait, but a megabyte of it takes a millisecond or two, most of it for the fresh memory
 * that Ruby reads into. */
enum { HD_PIECE_SIZE = 1 << 19 };

/* Returns the kind by the class of the IO, which costs no system call. An IO made from a file's descriptor is
 * recognised when it has to wait. */
hd_file_kind hd_kind_of(VALUE io);

/* Returns the transfer of an open IO of this kind: without a position in the file, and without a buffer. */
hd_transfer hd_transfer_of(hd_scheduler *scheduler, hd_direction direction, VALUE io, hd_file_kind kind);

/* Moves the bytes of one call. Up to Ruby 4.0, length 0 asks for one transfer (IO#write: for all bytes), and a positive
 * length for at least that number of bytes (fewer at the end of the file). From 4.1 on, it is one transfer of at most
 * length bytes. Returns an Integer: the number of bytes, or -errno. */
VALUE hd_move_all(hd_transfer *call);

/* Does the call write Ruby's write buffer? */
bool hd_is_flush(hd_transfer *call);

/* Writes the whole buffer of the IO, also the bytes that others append to it meanwhile. Returns an Integer: the number
 * of bytes that the caller must still take off the buffer, or -errno. */
VALUE hd_flush_all(hd_transfer *call);

/* Writes the whole buffer, for a fiber of this scheduler that holds the IO's write lock. Returns 0 or -errno. */
int hd_flush_locked(hd_scheduler *scheduler, VALUE io);

/* Returns the bytes of the buffer from the offset on. Callers ask anew after every wait, because the buffer may have
 * changed. */
void *hd_transfer_bytes(hd_transfer *call, size_t *size);
NORETURN(void hd_raise_out_of_bounds(void));

/* Prepares a read: another task may wait for the answer on the same connection (shared_io.h). */
void hd_transfer_meets_reader(hd_transfer *call);

/* Makes one transfer that does not wait. Returns the number of bytes or -errno. */
ssize_t hd_transfer_try(hd_transfer *call, void *bytes, size_t size);

/* Sends bytes with those of other fibers, and waits until that is done. Returns the number of bytes sent, or -errno.
 * -EAGAIN means that none were sent, and the caller must try directly. */
ssize_t hd_transfer_send(hd_transfer *call, const char *bytes, size_t size);

/* Lets the other fibers run if the turn is used up. Returns true if they may have run. */
bool hd_transfer_spend_turn(hd_transfer *call);

/* Waits for events of an IO. Returns the ready ones, or 0 when the deadline has passed. */
int hd_wait_io(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns);

/* Looks for events, for at most timeout_ms (-1: for ever). Returns the ready ones, 0 or -errno. */
int hd_poll_once(int fd, int events, int timeout_ms);
