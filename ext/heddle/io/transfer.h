/* Reads and writes of an IO: the system call first, a wait only when it would block. */
#pragma once

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
    bool in_part;     /* a part has been moved: what comes now must not wait for anybody (but for the disk) */
    bool reads_ahead; /* into Ruby's read buffer */
    bool flushes;     /* it is Ruby's write buffer */
    bool accepts;     /* connections, not bytes */
    bool amid;        /* a part was read, which is not anywhere else */
    bool others_ran;  /* since Ruby has looked into its read buffer */
    bool came;        /* the last wait has brought what it was to wait for: see hd_transfer_wait_for_bytes */
    ssize_t moved;    /* so many bytes, 0 at the end, or -errno */
} hd_transfer;

/* What is read arrives here first: a string then has the size of what has come, and who waits holds no memory. It is
 * empty whenever another fiber may run. (It is the scheduler's, not the native thread's: a Ruby thread may go on in
 * another one after a wait.) */
enum { HD_LANDING_SIZE = 16 * 1024 };
char *hd_landing(hd_scheduler *scheduler);

/* A file that the kernel has in memory never makes the caller wait, but a megabyte of it takes a millisecond or two,
 * most of it for the fresh memory that Ruby reads into: the others have their turn after every piece. */
enum { HD_PIECE_SIZE = 1 << 19 };

/* By class, which costs no system call. An IO made of a file's descriptor shows what it is in hd_transfer_wait. */
hd_file_kind hd_kind_of(VALUE io);

/* Up to 4.0: length 0 asks for one transfer (IO#write: for all), a positive one for at least so many bytes (less at the
 * end of the file). From 4.1 on: one transfer of at most length bytes. An Integer: how many, or -errno. */
VALUE hd_move_all(hd_transfer *call);

/* Is it Ruby's write buffer that is to be written? */
bool hd_is_flush(hd_transfer *call);

/* Writes the whole buffer of the IO, also what others append to it meanwhile. An Integer: what is still to be taken off
 * the buffer, or -errno. */
VALUE hd_flush_all(hd_transfer *call);

/* Writes the whole buffer, for a fiber of this scheduler that holds the IO's write lock. 0 or -errno. */
int hd_flush_locked(hd_scheduler *scheduler, VALUE io);

/* The bytes of the buffer from the offset on. Asked for anew after every wait: the buffer may have changed. */
void *hd_transfer_bytes(hd_transfer *call, size_t *size);
NORETURN(void hd_raise_out_of_bounds(void));

/* It is about to read: another task may wait for the answer on the same connection (shared_io.h). */
void hd_transfer_meets_reader(hd_transfer *call);

/* Is it so likely that it will have to wait that it should not try first, if it may wait? */
bool hd_transfer_expects_to_wait(const hd_transfer *call);

/* The descriptor is about to be another file's. */
void hd_transfer_forget(hd_scheduler *scheduler, int fd);

/* Waits until the IO is ready for this transfer. *deadline_ns: 0 before the first wait. */
void hd_transfer_wait(hd_transfer *call, int64_t *deadline_ns);

/* The same for a read of at most so many bytes. They may come with the wait (call->came): io_uring reads them when they
 * are there. Then the caller takes them, for they are nowhere else: also if the IO was closed meanwhile, where the
 * fiber can go on with them. */
void hd_transfer_wait_for_bytes(hd_transfer *call, size_t size, int64_t *deadline_ns);

/* One transfer that does not wait. Bytes or -errno. The first write of a turn shows whether the peers are tasks of this
 * thread: then the kernel has something to tell after it. */
ssize_t hd_transfer_try(hd_transfer *call, void *bytes, size_t size);

/* Shall a small write to a socket go out with those of the others? Others are ready, and so a turn goes on anyway. It
 * pays where each write would wake another process; not where the peers are tasks of this thread. */
bool hd_transfer_sends_with_others(const hd_transfer *call, size_t size);

/* Sends so: waits until it is done. How many bytes were sent, or -errno. -EAGAIN: none were, try it. */
ssize_t hd_transfer_send(hd_transfer *call, const char *bytes, size_t size);

/* Before an attempt: waits if the last one has found nothing, or if that is expected (hd_transfer_wait_for_bytes); else
 * the others run if the turn is used up. True: others may have run, so the caller looks at the IO again. */
bool hd_transfer_prepare(hd_transfer *call, bool wait, size_t size, int64_t *deadline_ns);

/* The second half of that: for an attempt that is not expected to wait. */
bool hd_transfer_spend_turn(hd_transfer *call);

/* Waits for events of an IO. The ready ones, or 0 when the deadline passed. */
int hd_wait_io(hd_scheduler *scheduler, VALUE io, int fd, int events, int64_t deadline_ns);

/* Looks for events, for so many ms at most (-1: for ever). The ready ones, 0 or -errno. */
int hd_poll_once(int fd, int events, int timeout_ms);
