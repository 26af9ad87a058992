/* The hook address_resolve: the system's resolver on a worker thread. */
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "../os/resolve.h"
#include "park.h"

typedef struct {
    hd_scheduler *scheduler;
    hd_resolve_job *job;
    VALUE host;
} resolution;

static VALUE addresses_of(const struct addrinfo *address)
{
    VALUE list = rb_ary_new();
    for (; address; address = address->ai_next) {
        char text[NI_MAXHOST]; /* with the zone id of a link-local address */
        if (getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0)
            rb_ary_push(list, rb_str_new_cstr(text));
    }
    return list;
}

static VALUE resolve(VALUE pointer)
{
    resolution *resolution = (void *)pointer;
    int error = hd_park_worker(resolution->scheduler, &resolution->job->job, resolution->host);
    if (error) rb_syserr_fail(-error, "heddle: cannot start a worker");
    return resolution->job->error ? Qnil : addresses_of(resolution->job->addresses);
}

static VALUE release(VALUE pointer)
{
    hd_worker_release(&((resolution *)pointer)->job->job);
    return Qnil;
}

/* @param host [String]
 * @return [Array<String>, nil] numeric addresses in the resolver's order, or nil when the name is unknown */
static VALUE hook_address_resolve(VALUE self, VALUE host)
{
    resolution resolution = {.scheduler = hd_scheduler_ready(self), .host = host};
    resolution.job = hd_resolve_job_new(StringValueCStr(host));
    if (!resolution.job) rb_memerror();
    return rb_ensure(resolve, (VALUE)&resolution, release, (VALUE)&resolution);
}

void hd_init_hooks_resolve(void)
{
    rb_define_method(hd_cScheduler, "address_resolve", hook_address_resolve, 1);
}
