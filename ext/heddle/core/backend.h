/* THE SEAM: what every kernel interface supplies. A backend arms interests, disarms them, polls and wakes; it knows
 * nothing of fibers, timers or Ruby.
 *
 * Contract:
 *
 *  - open makes the kernel objects. It runs on the thread that will poll. It returns 0 or -errno.
 *  - arm gives one interest to the backend. Exactly one delivery follows (one-shot), unless disarm comes first.
 *    Returns 0, -EPERM (this descriptor cannot be polled: a regular file on epoll) or another -errno.
 *  - disarm takes the interest back. After it returns, the backend never touches the record again. The kernel may
 *    still have a token for it (slot and generation, never the record's address).
 *  - An interest may want bytes. If the backend reads data by itself, it delivers them with the event, by
 *    hd_interest_deliver_bytes. A disarm then waits until the kernel has dropped the read, and delivers what the
 *    kernel has read before. The bytes are in the backend's memory until release_bytes. Every byte that is read is
 *    delivered.
 *  - An interest may have bytes to send, if can_send accepts their number. The backend copies them when the interest is
 *    armed. With the event it reports how many it has sent, also by hd_interest_deliver_bytes. A disarm waits for this
 *    report. If none were sent, the event says only that the descriptor is ready.
 *  - has_news says whether something has come that the next poll will deliver. It makes no system call.
 *  - gathers says whether a request was prepared that the next poll will submit.
 *  - withdraw makes sure that the kernel does not get the descriptor later: the descriptor will soon be
 *    closed, and its number may become another file's. The interest stays armed, but its wait is over.
 *    The argument polls says that poll_nogvl runs, or will soon run, in the backend's thread. It may submit the request
 *    at any moment, so withdraw then returns when the kernel has it.
 *  - release_bytes, can_send, has_news, gathers and withdraw are all NULL in a backend that only reports readiness.
 *  - release_files makes the kernel let go of every file that was only disarmed so far (before a close).
 *  - poll_nogvl runs without the GVL. It makes the one system call that waits, and touches only the backend's
 *    private memory and the kernel. timeout_ns: 0 = only look, HD_NO_DEADLINE = for ever. It never ends early for a
 *    timeout (it rounds up). watches: an interest is armed; without one it may sleep without watching descriptors. arm,
 *    disarm and release_files are never called while it runs.
 *  - reap runs with the GVL, and calls hd_interest_deliver for everything that poll_nogvl has found.
 *  - wake may be called from any thread at any time between open and close: a poll_nogvl that runs, or else the next
 *    one, returns at once.
 *  - rest is called at the end of a loop, when no interest is armed, because another loop of this thread may use the
 *    backend next. False if the kernel still works for the loop that ends: then the backend must be closed.
 *  - close frees every resource. The child of a fork calls it, too, and there it must not disturb the parent's
 *    kernel objects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hd_interest hd_interest; /* interest.h */
typedef struct hd_backend hd_backend;   /* each backend defines its own */

typedef struct {
    const char *name;
    /* Returns 0 if this machine offers it; else -errno, and `reason` says why, in words for people. Makes and drops a
     * trial object. */
    int (*probe)(char *reason, int reason_size);
    /* pinned: this Ruby thread never moves to another native thread. */
    int (*open)(hd_backend **backend, bool pinned);
    void (*close)(hd_backend *backend);
    int (*arm)(hd_backend *backend, hd_interest *interest);
    void (*disarm)(hd_backend *backend, hd_interest *interest);
    void (*release_bytes)(hd_backend *backend, const char *bytes);
    bool (*can_send)(hd_backend *backend, size_t size);
    bool (*has_news)(hd_backend *backend);
    bool (*gathers)(hd_backend *backend);
    void (*withdraw)(hd_backend *backend, hd_interest *interest, bool polls);
    void (*release_files)(hd_backend *backend);
    void (*poll_nogvl)(hd_backend *backend, int64_t timeout_ns, bool watches);
    void (*reap)(hd_backend *backend);
    void (*wake)(hd_backend *backend);
    bool (*rest)(hd_backend *backend);
} hd_backend_ops;
