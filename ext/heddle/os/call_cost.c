/* THE COST OF A SYSTEM CALL: measured once for each process.
 *
 * Problem: a request of the ring saves a system call, and costs two more switches of fibers. Whether that pays depends
 * on the machine. Page-table isolation, a seccomp filter, a hypervisor or a tracer make each call five to a hundred
 * times as dear as it is elsewhere. Way: time the smallest call. An interrupt only makes a call longer, so the shortest
 * of several counts.
 *
 * Source: getppid(2), which the C library does not answer by itself. */
#include "call_cost.h"

#include <unistd.h>

#include "core/clock.h"

enum { ROUNDS = 4, CALLS_PER_ROUND = 2 };

int64_t hd_call_cost_ns(void)
{
    static int64_t known;
    int64_t cost_ns = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (cost_ns) return cost_ns;
    cost_ns = HD_NS_PER_SECOND;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before_ns = hd_clock_machine();
        for (int call = 0; call < CALLS_PER_ROUND; call++) (void)getppid();
        cost_ns = hd_earlier(cost_ns, (hd_clock_machine() - before_ns) / CALLS_PER_ROUND);
    }
    if (cost_ns < 1) cost_ns = 1;
    __atomic_store_n(&known, cost_ns, __ATOMIC_RELAXED);
    return cost_ns;
}
