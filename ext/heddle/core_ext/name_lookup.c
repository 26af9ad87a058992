/* Heddle::CoreExt::NameLookup.names_of: the names of an address, for lib/heddle/core_ext/name_lookup.rb. */
#include <string.h>

#include "fibers/worker_call.h"
#include "io/lookup_call.h"
#include "ruby/init.h"

typedef struct {
    hd_scheduler *scheduler;
    hd_name_lookup *job;
    VALUE host; /* for reports */
} name_lookup;

static VALUE look_up(VALUE pointer)
{
    name_lookup *lookup = (void *)pointer;
    hd_name_lookup *job = lookup->job;
    hd_run_on_worker(lookup->scheduler, &job->job, lookup->host);
    if (job->error) rb_exc_raise(hd_resolution_error(job->error, job->error_number, "getnameinfo"));
    return rb_assoc_new(rb_str_new_cstr(job->host), rb_str_new_cstr(job->service));
}

static VALUE release(VALUE pointer)
{
    hd_job_release(&((name_lookup *)pointer)->job->job);
    return Qnil;
}

/* Fills in the address. Returns false if it is not a whole IP address. */
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

/* @private
 * @param sockaddr [String] packed
 * @return [Array(String, String), nil] the names of the host and the service; nil: not an IP address
 * @raise [Socket::ResolutionError] */
static VALUE names_of(VALUE self, VALUE sockaddr, VALUE flags)
{
    hd_address address = {0};
    int number = NUM2INT(flags);
    if (!ip_address(sockaddr, &address)) return Qnil;
    name_lookup lookup = {.scheduler = hd_scheduler_ready(rb_fiber_scheduler_current())};
    lookup.host = hd_numeric_host(&address);
    lookup.job = hd_name_lookup_new(&address, number);
    if (!lookup.job) rb_memerror();
    return rb_ensure(look_up, (VALUE)&lookup, release, (VALUE)&lookup);
}

void hd_init_name_lookup(void)
{
    VALUE core_ext = rb_define_module_under(hd_mHeddle, "CoreExt");
    rb_define_singleton_method(rb_define_module_under(core_ext, "NameLookup"), "names_of", names_of, 2);
}
