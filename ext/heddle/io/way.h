/* Which way a transfer goes: does it wait before its system call, and is it a request of the ring? way.c says why. */
#pragma once

#include "transfer.h"

/* The longest read whose bytes may be received with the end of a wait: Ruby's read buffer has room for as much, see
 * hd_io_put_back. */
enum { HD_RECEIVED_MAX = 8192 };

/* The longest write that goes out with those of others. */
enum { HD_SHARED_WRITE_MAX = 4096 };

/* Decides whether the operations of this scheduler share system calls. `name` is "ring", "direct" or NULL: by the cost
 * of a system call. Returns false if the name is unknown. */
bool hd_way_choose(hd_scheduler *scheduler, const char *name);

/* Is the call likely to wait? If so, and if it may wait, it should not try first. */
bool hd_expects_to_wait(const hd_transfer *call);

/* Notes whether this read had to wait, for the next one. */
void hd_expect_to_wait(const hd_transfer *call, bool wait);

/* Forgets what was learned about a descriptor that is about to be another file's. */
void hd_forget_way(hd_scheduler *scheduler, int fd);

/* Can the kernel move the bytes of this IO by itself, at the request of this thread? */
bool hd_ring_moves(const hd_transfer *call);

/* Should a read of this size wait first? Either it is likely to wait, or it shares a system call with others. */
bool hd_waits_first(hd_transfer *call, size_t size);

/* Should a small write go out with those of other fibers? Then it waits for its answer. */
bool hd_write_shares_call(hd_transfer *call, size_t size);

/* Begins a direct write, and ends it. The first write since the last look at the kernel shows whether the peers are
 * tasks of this thread: then the kernel has something to report after it. True: it is the first write, and
 * hd_end_direct_write must follow. news: the kernel has something to report already. */
bool hd_begin_direct_write(const hd_transfer *call, bool *news);
void hd_end_direct_write(const hd_transfer *call, bool news);

/* Notes the answer to a write of the ring: did other requests share its system call? */
void hd_note_shared_write(const hd_transfer *call);

/* Is the listening socket known not to block? The kernel is asked once for each IO. */
bool hd_accepts_without_blocking(const hd_transfer *call);
