/* Lookups of host names by the system's resolver. See lookup_call.h for the interface.
 *
 * The problem: getaddrinfo blocks, and may do so for many seconds if a name server does not answer. The other fibers of
 * the thread would wait with it.
 *
 * The way: getaddrinfo runs on a worker thread, so the hosts file, nsswitch and mDNS work as elsewhere. Nothing is
 * cached. A fiber that waits for a name alone parks for the job. One that waits for several things (two families,
 * sockets that connect) holds a Heddle::Lookup.
 *
 * Rejected: to resolve names of the hosts file inline. The price of a worker is so small that nothing was gained
 * (guides/design.md, Names).
 *
 * The price: a name that does not answer occupies a worker. os/ limits the number of these workers, and a lookup may
 * follow another one for the same name.
 *
 * Source: guides/design.md (Names). */
#include "lookup_call.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>

#include "fibers/park.h"
#include "fibers/pending/pending.h"
#include "fibers/turn.h"
#include "fibers/worker_call.h"
#include "ruby/deadline.h"
#include "ruby/init.h"

/* -- the results of a lookup --------------------------------------------------------------------------------- */

VALUE hd_resolution_error(int code, int error_number, const char *reason)
{
    if (code == EAI_SYSTEM && error_number != 0) return rb_syserr_new(error_number, reason);
    VALUE message = rb_sprintf("%s: %s", reason, gai_strerror(code));
    VALUE error = rb_class_new_instance(1, &message, rb_path2class("Socket::ResolutionError"));
    rb_ivar_set(error, rb_intern("error_code"), INT2NUM(code)); /* the name has no @, so Ruby code cannot see it */
    return error;
}

static VALUE error_of(const hd_address_lookup *job, const char *reason)
{
    return hd_resolution_error(job->error, job->error_number, reason);
}

VALUE hd_numeric_host(const hd_address *address)
{
    const struct sockaddr *any = &address->address.any;
    char text[NI_MAXHOST];
    /* a tenth of the cost of getnameinfo */
    if (any->sa_family == AF_INET && address->length == sizeof(struct sockaddr_in)) {
        inet_ntop(AF_INET, &address->address.ipv4.sin_addr, text, sizeof(text));
        return rb_str_new_cstr(text);
    }
    int error = getnameinfo(any, address->length, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
    return error ? Qnil : rb_str_new_cstr(text);
}

static VALUE numeric_addresses(const hd_address_lookup *job)
{
    VALUE list = rb_ary_new();
    for (size_t i = 0; i < job->count; i++) {
        VALUE host = hd_numeric_host(&job->addresses[i]);
        if (!NIL_P(host)) rb_ary_push(list, host);
    }
    return list;
}

/* -- one host -------------------------------------------------------------------------------------------------- */

typedef struct {
    hd_scheduler *scheduler;
    hd_address_lookup *job;
    VALUE host;
} resolve_call;

static VALUE resolve(VALUE pointer)
{
    resolve_call *resolution = (void *)pointer;
    hd_turn_spend(resolution->scheduler, resolution->host, HD_TURN_ENDS);
    hd_run_on_worker(resolution->scheduler, &resolution->job->job, resolution->host);
    if (!resolution->job->error) return numeric_addresses(resolution->job);
    if (resolution->job->error == EAI_NONAME) return Qnil;
    rb_exc_raise(error_of(resolution->job, "getaddrinfo")); /* nil would mean "unknown", and not "try again" */
}

static VALUE release(VALUE pointer)
{
    hd_job_release(&((resolve_call *)pointer)->job->job);
    return Qnil;
}

VALUE hd_addresses_of(hd_scheduler *scheduler, VALUE host)
{
    resolve_call resolution = {.scheduler = scheduler, .host = host};
    resolution.job = hd_address_lookup_new(StringValueCStr(host), NULL, AF_UNSPEC);
    if (!resolution.job) rb_memerror();
    return rb_ensure(resolve, (VALUE)&resolution, release, (VALUE)&resolution);
}

/* -- Heddle::Lookup ------------------------------------------------------------------------------------------ */

typedef struct {
    hd_address_lookup *job; /* NULL when released */
    VALUE scheduler;     /* its inbox must outlive the job */
} lookup_data;

static void lookup_mark(void *pointer)
{
    rb_gc_mark(((lookup_data *)pointer)->scheduler);
}

static void drop(lookup_data *lookup)
{
    if (lookup->job) hd_job_release(&lookup->job->job);
    lookup->job = NULL;
}

static void lookup_free(void *pointer)
{
    drop(pointer);
    xfree(pointer);
}

static VALUE cLookup;

static const rb_data_type_t LOOKUP_TYPE = {
    .wrap_struct_name = "heddle_lookup",
    .function = {.dmark = lookup_mark, .dfree = lookup_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static lookup_data *lookup_get(VALUE self)
{
    lookup_data *found = rb_check_typeddata(self, &LOOKUP_TYPE);
    if (!found->job) rb_raise(hd_eError, "the lookup was released");
    return found;
}

static const char *text_or_null(VALUE *text)
{
    return NIL_P(*text) ? NULL : StringValueCStr(*text);
}

static hd_address_lookup *submit(hd_scheduler *scheduler, const char *host, const char *service, int family)
{
    hd_address_lookup *job = hd_address_lookup_new(host, service, family);
    if (!job) rb_memerror();
    hd_submit_or_run(scheduler, &job->job);
    return job;
}

/* Makes a Heddle::Lookup, which owns the job. */
static VALUE lookup_new(VALUE scheduler, hd_address_lookup *job)
{
    lookup_data *created;
    VALUE object = TypedData_Make_Struct(cLookup, lookup_data, &LOOKUP_TYPE, created);
    created->scheduler = scheduler;
    created->job = job;
    return object;
}

/* @private Starts to resolve a name on a worker. */
static VALUE scheduler_lookup(VALUE self, VALUE host, VALUE service, VALUE family)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int number = NUM2INT(family);
    return lookup_new(self, submit(scheduler, text_or_null(&host), text_or_null(&service), number));
}

/* -- the address of most hosts ------------------------------------------------------------------------------- */

typedef struct {
    hd_scheduler *scheduler;
    hd_address_lookup *job;
    VALUE host, object;
    int64_t deadline_ns;
    bool waited;
} find_call;

/* Is there exactly one address, and can Ruby take it for a host? */
static bool only_address_p(hd_address_lookup *job)
{
    if (!hd_job_finished(&job->job) || job->error || job->count != 1) return false;
    const hd_address *only = &job->addresses[0];
    int family = only->address.any.sa_family;
    return family == AF_INET || (family == AF_INET6 && !only->address.ipv6.sin6_scope_id);
}

static VALUE host_and_port(const hd_address *address)
{
    VALUE host = hd_numeric_host(address);
    if (NIL_P(host)) return Qnil;
    int port = ntohs(address->address.ipv4.sin_port); /* both families have it at this place */
    return rb_assoc_new(host, INT2FIX(port));
}

static VALUE await(VALUE pointer)
{
    find_call *finding = (void *)pointer;
    hd_job *job = &finding->job->job;
    hd_request request = {.kind = HD_WAIT_FOR_WORKER, .subject = finding->host, .deadline_ns = finding->deadline_ns,
                          .jobs = &job, .jobs_count = 1};
    int error = hd_park_until_ready(finding->scheduler, &request);
    if (error < 0) rb_syserr_fail(-error, "heddle: cannot wait for an address");
    finding->waited = true;
    return Qnil;
}

static VALUE end_await(VALUE pointer)
{
    find_call *finding = (void *)pointer;
    if (!finding->waited) drop(rb_check_typeddata(finding->object, &LOOKUP_TYPE));
    return Qnil;
}

VALUE hd_find_address(VALUE self, VALUE host, const char *service, int64_t deadline_ns)
{
    find_call finding = {.scheduler = hd_scheduler_ready(self), .host = host, .deadline_ns = deadline_ns};
    hd_turn_spend(finding.scheduler, host, HD_TURN_ENDS);
    finding.job = submit(finding.scheduler, text_or_null(&host), service, AF_UNSPEC);
    finding.object = lookup_new(self, finding.job);
    if (!hd_job_finished(&finding.job->job)) rb_ensure(await, (VALUE)&finding, end_await, (VALUE)&finding);
    if (!only_address_p(finding.job)) return finding.object;
    hd_address only = finding.job->addresses[0];
    drop(rb_check_typeddata(finding.object, &LOOKUP_TYPE));
    return host_and_port(&only);
}

/* @private Resolves a name, and waits for it for no longer than the timeout.
 * @return [Array(String, Integer), Lookup] the numeric host and the port, if the name is resolved by then and has
 *   exactly one address; else the Lookup, from which the caller gets the addresses */
static VALUE scheduler_find_address(VALUE self, VALUE host, VALUE service, VALUE timeout)
{
    return hd_find_address(self, host, text_or_null(&service), hd_deadline_from(timeout));
}

/* -- the methods of a Lookup --------------------------------------------------------------------------------- */

/* @private @return [Boolean] has the resolver answered? */
static VALUE lookup_finished(VALUE self)
{
    return hd_job_finished(&lookup_get(self)->job->job) ? Qtrue : Qfalse;
}

/* @private @return [Array<String>] the addresses as packed sockaddr; none if there is an error */
static VALUE lookup_addresses(VALUE self)
{
    hd_address_lookup *job = lookup_get(self)->job;
    VALUE list = rb_ary_new();
    if (!hd_job_finished(&job->job)) return list;
    for (size_t i = 0; i < job->count; i++)
        rb_ary_push(list, rb_str_new(job->addresses[i].address.bytes, job->addresses[i].length));
    return list;
}

/* @private @return [Exception, nil] why there are no addresses */
static VALUE lookup_error(VALUE self, VALUE reason)
{
    hd_address_lookup *job = lookup_get(self)->job;
    if (!hd_job_finished(&job->job) || !job->error) return Qnil;
    return error_of(job, StringValueCStr(reason));
}

/* @private Gives the lookup up, because the answer is not wanted any longer. */
static VALUE lookup_release(VALUE self)
{
    drop(rb_check_typeddata(self, &LOOKUP_TYPE));
    return Qnil;
}

/* @private Converts a packed sockaddr without a thread, which Ruby 3.3 would start for this.
 * @return [Array(String, Integer)] the numeric host and the port */
static VALUE lookup_s_host_and_port(VALUE self, VALUE address)
{
    hd_address copy = {0};
    StringValue(address);
    copy.length = (socklen_t)RSTRING_LEN(address);
    if (copy.length > sizeof(copy.address)) rb_raise(rb_eArgError, "not an IP address");
    memcpy(copy.address.bytes, RSTRING_PTR(address), copy.length);
    VALUE found = host_and_port(&copy);
    if (NIL_P(found)) rb_raise(rb_eArgError, "not an IP address");
    return found;
}

/* @private Waits until one of the lookups has ended, or one of the sockets is connected or has failed to connect.
 * @return [Array<Socket>] those sockets; empty also when the timeout has passed */
static VALUE scheduler_wait_for_connection(VALUE self, VALUE host, VALUE lookups, VALUE sockets, VALUE timeout)
{
    hd_scheduler *scheduler = hd_scheduler_ready(self);
    int64_t deadline_ns = hd_deadline_of_limit(timeout);
    Check_Type(lookups, T_ARRAY);
    Check_Type(sockets, T_ARRAY);
    size_t jobs_count = RARRAY_LEN(lookups), count = RARRAY_LEN(sockets);
    VALUE memory;
    size_t bytes = count * sizeof(hd_interest) + (jobs_count + 1) * sizeof(hd_job *);
    hd_interest *interests = ALLOCV(memory, bytes);
    hd_job **jobs = (void *)(interests + count);
    for (size_t i = 0; i < jobs_count; i++) jobs[i] = &lookup_get(RARRAY_AREF(lookups, i))->job->job;
    for (size_t i = 0; i < count; i++) {
        VALUE io = rb_io_get_io(RARRAY_AREF(sockets, i));
        interests[i] = (hd_interest){.fd = rb_io_descriptor(io), .events = POLLOUT, .io = (hd_word)io};
    }
    hd_request request = {.kind = count ? HD_WAIT_FOR_SELECT : HD_WAIT_FOR_WORKER, .subject = host,
                          .deadline_ns = deadline_ns, .interests = interests, .interests_count = count,
                          .jobs = jobs, .jobs_count = jobs_count};
    int error = hd_park_until_ready(scheduler, &request);
    if (error < 0) rb_syserr_fail(-error, "heddle: cannot wait for a connection");
    VALUE ready = rb_ary_new();
    for (size_t i = 0; i < count; i++)
        if (interests[i].revents) rb_ary_push(ready, RARRAY_AREF(sockets, i));
    ALLOCV_END(memory);
    RB_GC_GUARD(lookups);
    RB_GC_GUARD(sockets);
    return ready;
}

void hd_init_lookup_call(void)
{
    rb_define_method(hd_cScheduler, "lookup", scheduler_lookup, 3);
    rb_define_method(hd_cScheduler, "find_address", scheduler_find_address, 3);
    rb_define_method(hd_cScheduler, "wait_for_connection", scheduler_wait_for_connection, 4);
    /* Document-class: Heddle::Lookup
     *
     * A question to the resolver that is not answered yet.
     *
     * @private */
    cLookup = rb_define_class_under(hd_mHeddle, "Lookup", rb_cObject);
    rb_funcall(hd_mHeddle, rb_intern("private_constant"), 1, ID2SYM(rb_intern("Lookup")));
    rb_undef_alloc_func(cLookup);
    rb_define_singleton_method(cLookup, "host_and_port", lookup_s_host_and_port, 1);
    rb_define_method(cLookup, "finished?", lookup_finished, 0);
    rb_define_method(cLookup, "addresses", lookup_addresses, 0);
    rb_define_method(cLookup, "error", lookup_error, 1);
    rb_define_method(cLookup, "release", lookup_release, 0);
}
