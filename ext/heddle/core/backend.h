/* THE SEAM: what every kernel interface supplies. A backend arms interests, disarms them, polls and wakes; it
 * knows nothing of fibers, timers or Ruby.
 *
 * Contract
 *  - open makes the kernel objects; it runs on the thread that will poll. It returns 0 or -errno.
 *  - arm hands one interest over: exactly one delivery follows (one-shot), unless disarm comes first.
 *    0, -EPERM (this descriptor cannot be polled: a regular file on epoll) or another -errno.
 *  - disarm takes it back: after it returns the backend never touches the record again, though the kernel may
 *    still hold a token for it (slot and generation, never the record's address).
 *  - an interest may want bytes: if the backend reads data by itself, it brings them with the event, by
 *    hd_interest_deliver_bytes. A disarm then waits until the kernel has dropped the read, and brings what it has read
 *    before. The bytes lie in the backend's memory until release_bytes; no byte is read that is not brought.
 *    release_bytes is NULL where the backend only tells of readiness.
 *  - an interest may have bytes to send, as many as can_send says yes to: the backend makes a copy of them when it is
 *    armed, and tells with the event how many it has sent, by hd_interest_deliver_bytes, too. A disarm waits for that.
 *    If none were sent, it tells of readiness. can_send is NULL where release_bytes is.
 *  - has_news: has something come that the next poll brings? It makes no system call. NULL where can_send is.
 *  - withdraw: the kernel is not given the descriptor if it does not have it yet, because the descriptor is about to be
 *    closed, and its number may become another file's. The interest stays armed; its wait is over. polls: poll_nogvl
 *    runs, or is about to, in the backend's thread: the kernel has the descriptor when withdraw is over. NULL where
 *    can_send is.
 *  - release_files makes the kernel let go of every file that was only disarmed so far (before a close).
 *  - poll_nogvl runs without the GVL: it makes the one system call that waits, and touches only the backend's
 *    private memory and the kernel. timeout_ns: 0 = look only, HD_NO_DEADLINE = for ever. Never wakes early
 *    for a timeout (rounding up). watches: an interest is armed; without one it need not wait in the kernel's watch.
 *    arm, disarm and release_files are never called while it runs.
 *  - reap, with the GVL, calls hd_interest_deliver for everything that poll_nogvl found.
 *  - wake may be called from any thread at any time between open and close: a poll_nogvl that runs, or the next
 *    one, returns at once.
 *  - rest, when no interest is armed: the loop ends, and another one of this thread may go on with the backend. False
 *    if the kernel still works for the one that ends: then it is to be closed.
 *  - close gives back every resource. The child of a fork calls it, too: there it must not disturb the parent's
 *    kernel objects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hd_interest hd_interest; /* interest.h */
typedef struct hd_backend hd_backend;   /* each one defines its own */

typedef struct {
    const char *name;
    /* 0 if this machine offers it; else -errno, with the reason for people in `reason`. Makes and drops a trial
     * object. */
    int (*probe)(char *reason, int reason_size);
    /* pinned: this Ruby thread never moves to another native thread. */
    int (*open)(hd_backend **backend, bool pinned);
    void (*close)(hd_backend *backend);
    int (*arm)(hd_backend *backend, hd_interest *interest);
    void (*disarm)(hd_backend *backend, hd_interest *interest);
    void (*release_bytes)(hd_backend *backend, const char *bytes);
    bool (*can_send)(hd_backend *backend, size_t size);
    bool (*has_news)(hd_backend *backend);
    void (*withdraw)(hd_backend *backend, hd_interest *interest, bool polls);
    void (*release_files)(hd_backend *backend);
    void (*poll_nogvl)(hd_backend *backend, int64_t timeout_ns, bool watches);
    void (*reap)(hd_backend *backend);
    void (*wake)(hd_backend *backend);
    bool (*rest)(hd_backend *backend);
} hd_backend_ops;
