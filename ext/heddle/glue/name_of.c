/* Heddle::Scheduler#name_of: the names of an address, for lib/heddle/core_ext/reverse_lookup.rb. */
#include <string.h>

#include "hook_resolve.h"
#include "worker_call.h"

typedef struct {
    hd_scheduler *scheduler;
    hd_name_lookup *job;
    VALUE host; /* for reports */
} reversal;

static VALUE reverse(VALUE pointer)
{
    reversal *reversal = (void *)pointer;
    hd_name_lookup *job = reversal->job;
    hd_run_on_worker(reversal->scheduler, &job->job, reversal->host);
    if (job->error) rb_exc_raise(hd_resolution_error(job->error, job->error_number, "getnameinfo"));
    return rb_assoc_new(rb_str_new_cstr(job->host), rb_str_new_cstr(job->service));
}

static VALUE release(VALUE pointer)
{
    hd_job_release(&((reversal *)pointer)->job->job);
    return Qnil;
}

/* Fills it in; false when it is no whole IP address. */
static bool ip_address(VALUE sockaddr, hd_address *address)
{
    StringValue(sockaddr);
    size_t length = (size_t)RSTRING_LEN(sockaddr);
    if (length > sizeof(address->address) || length < sizeof(sa_family_t)) return false;
    memcpy(address->address.bytes, RSTRING_PTR(sockaddr), length);
    address->length = (socklen_t)length;
    switch (address->address.any.sa_family) {
    case AF_INET:
        return length == sizeof(struct sockaddr_in);
    case AF_INET6:
        return length == sizeof(struct sockaddr_in6);
    default:
        return false;
    }
}

/* @private @param sockaddr [String] packed
 * @return [Array(String, String), nil] the names of the host and the service; nil: it is no IP address
 * @raise [Socket::ResolutionError] */
static VALUE scheduler_name_of(VALUE self, VALUE sockaddr, VALUE flags)
{
    hd_address address = {0};
    int number = NUM2INT(flags);
    if (!ip_address(sockaddr, &address)) return Qnil;
    reversal reversal = {.scheduler = hd_scheduler_ready(self)};
    reversal.host = hd_numeric_host(&address);
    reversal.job = hd_name_lookup_new(&address, number);
    if (!reversal.job) rb_memerror();
    return rb_ensure(reverse, (VALUE)&reversal, release, (VALUE)&reversal);
}

void hd_init_name_of(void)
{
    rb_define_private_method(hd_cScheduler, "name_of", scheduler_name_of, 2);
}
