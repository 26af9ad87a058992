/* Heddle::CoreExt::TCPSocketConnect, which replaces TCPSocket#initialize.
 *
 * The problem: Ruby 3.4 and newer do not ask the scheduler for a name in TCPSocket.new.
 *
 * The way: a host that is a name goes to lib/heddle/internal/connect. A host with exactly one address is looked up
 * here, and that address is passed to Ruby's own method. An address goes to Ruby's own method at once.
 *
 * The method is in C because libraries ask Ruby for its parameters (net-http, dalli), because an address should cost
 * nothing more, and because a name that has one address should cost little.
 *
 * Sources: guides/design.md (Names); guides/patches.md (tcp_connect). */

#include <limits.h>
#include <ruby/encoding.h>
#include <ruby/io.h>
#include <stdio.h>

#include "fibers/scheduler.h"
#include "fibers/turn.h"
#include "io/lookup_call.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "service_names.h"

enum { ARGUMENTS_MAX = 4, HOST_MAX = 1024, SERVICE_MAX = 31, RESOLUTION_DELAY_MS = 50 };

/* -- the arguments: a host, a port, and both of this end ------------------------------------------------------ */

/* Is it a text without a NUL, which Ruby takes as it is? */
static bool text_p(VALUE value, long longest)
{
    return RB_TYPE_P(value, T_STRING) && RSTRING_LEN(value) <= longest && rb_enc_asciicompat(rb_enc_get(value)) &&
           !memchr(RSTRING_PTR(value), '\0', (size_t)RSTRING_LEN(value));
}

/* Returns the address for which Ruby takes one of these texts, or NULL. */
static const char *special_address(VALUE host)
{
    static const char *const addresses[][2] = {
        {"", "0.0.0.0"}, {"<any>", "0.0.0.0"}, {"<broadcast>", "255.255.255.255"}};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        size_t length = strlen(addresses[i][0]);
        if ((size_t)RSTRING_LEN(host) == length && !memcmp(RSTRING_PTR(host), addresses[i][0], length))
            return addresses[i][1];
    }
    return NULL;
}

static bool numeric_p(VALUE host)
{
    char copy[64]; /* longer than any address, and the only one that ends with a NUL */
    long length = RSTRING_LEN(host);
    if (length >= (long)sizeof(copy)) return false;
    memcpy(copy, RSTRING_PTR(host), (size_t)length);
    copy[length] = '\0';
    return hd_host_numeric(copy);
}

static bool host_p(VALUE host)
{
    return NIL_P(host) || text_p(host, HOST_MAX);
}

static bool name_p(VALUE host)
{
    return NIL_P(host) || (text_p(host, HOST_MAX) && !special_address(host) && !numeric_p(host));
}

static bool service_p(VALUE port)
{
    return NIL_P(port) || FIXNUM_P(port) || text_p(port, SERVICE_MAX);
}

/* Are they a host and the number of a port, and nothing else? */
static bool simple_p(int argc, const VALUE *argv)
{
    bool simple = !NIL_P(argv[0]) && !NIL_P(argv[1]) && (FIXNUM_P(argv[1]) || hd_plain_port_p(argv[1]));
    for (int i = 2; i < argc; i++) simple &= NIL_P(argv[i]);
    return simple;
}

/* Must a name be looked up for these arguments? Arguments that Ruby does not accept are left to Ruby, which refuses
 * them. */
static bool by_name(int argc, const VALUE *argv)
{
    if (argc < 2 || argc > ARGUMENTS_MAX || !service_p(argv[1])) return false;
    if ((argc > 2 && !host_p(argv[2])) || (argc > 3 && !service_p(argv[3]))) return false;
    bool named_service = !hd_plain_port_p(argv[1]) || (argc > 3 && !hd_plain_port_p(argv[3]));
    return name_p(argv[0]) || (named_service && text_p(argv[0], HOST_MAX));
}

/* Is it an Integer for which Ruby's Addrinfo has no room? Socket.tcp refuses it then. */
static bool too_large(VALUE port)
{
    return FIXNUM_P(port) && FIX2LONG(port) > INT_MAX;
}

/* @private
 * @return [Boolean] see by_name; for Socket.tcp */
static VALUE connect_by_name_p(VALUE self, VALUE arguments)
{
    const VALUE *argv = RARRAY_CONST_PTR(arguments);
    return HD_BOOL(by_name(RARRAY_LENINT(arguments), argv) && !too_large(argv[1]) && !too_large(argv[3]));
}

/* @private @return [String, nil] the address that Ruby takes this host for; nil: it is a name */
static VALUE connect_address_of(VALUE self, VALUE host)
{
    if (NIL_P(host)) return Qnil;
    const char *special = special_address(host);
    if (special) return rb_str_new_cstr(special);
    return numeric_p(host) ? host : Qnil;
}

/* @private Raises Ruby's own error for a number of seconds that is too large for it.
 * @return [nil] */
static VALUE connect_check_seconds(VALUE self, VALUE seconds)
{
    if (!NIL_P(seconds)) rb_time_timespec_interval(seconds);
    return Qnil;
}

/* -- the calls ------------------------------------------------------------------------------------------------ */

/* Calls Ruby's own TCPSocket#initialize, with numbers in place of the names of services. */
static VALUE call_original(VALUE self, int argc, const VALUE *argv, int keywords)
{
    return rb_funcallv_kw(self, HD_KEPT("numeric_initialize"), argc, argv, keywords);
}

/* The block that lib/heddle/internal/connect calls. A block does not learn whether it was given keywords. */
static VALUE ruby_initialize(RB_BLOCK_CALL_FUNC_ARGLIST(first, self))
{
    (void)first, (void)blockarg;
    bool keywords = argc > 0 && RB_TYPE_P(argv[argc - 1], T_HASH);
    return call_original(self, argc, argv, keywords ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS);
}

/* Hands the call over to lib/heddle/internal/connect. The lookup has begun at began_at, or is nil. */
static void connect_by_name(VALUE self, VALUE scheduler, VALUE lookup, VALUE began_at, int argc, const VALUE *argv)
{
    VALUE arguments[4 + ARGUMENTS_MAX + 1] = {self, scheduler, lookup, began_at}; /* the last place is for keywords */
    memcpy(arguments + 4, argv, (size_t)argc * sizeof(VALUE));
    VALUE connect = rb_const_get(hd_mHeddle, rb_intern("Connect"));
    rb_block_call_kw(connect, rb_intern("open_tcp_socket"), argc + 4, arguments, ruby_initialize, self,
                     RB_PASS_CALLED_KEYWORDS);
}

/* -- most calls: a host and a port ---------------------------------------------------------------------------- */

typedef struct {
    VALUE self, scheduler, found; /* found: the numeric host and the port */
    int argc;
    const VALUE *argv;
} connect_call;

static VALUE connect_to_found(VALUE pointer)
{
    connect_call *connecting = (void *)pointer;
    return call_original(connecting->self, 2, RARRAY_CONST_PTR(connecting->found), RB_NO_KEYWORDS);
}

/* Raises an error that names the host as it was given. */
static VALUE fail_to_connect(VALUE pointer, VALUE error)
{
    connect_call *connecting = (void *)pointer;
    VALUE arguments[2 + ARGUMENTS_MAX] = {connecting->scheduler, error};
    memcpy(arguments + 2, connecting->argv, (size_t)connecting->argc * sizeof(VALUE));
    VALUE connect = rb_const_get(hd_mHeddle, rb_intern("Connect"));
    return rb_funcallv(connect, rb_intern("raise_failure"), 2 + connecting->argc, arguments);
}

static VALUE connect_simply(VALUE self, VALUE scheduler, int argc, const VALUE *argv)
{
    connect_call connecting = {.self = self, .scheduler = scheduler, .argc = argc, .argv = argv};
    char service[SERVICE_MAX + 1];
    if (FIXNUM_P(argv[1]))
        snprintf(service, sizeof(service), "%ld", FIX2LONG(argv[1]));
    else
        snprintf(service, sizeof(service), "%.*s", (int)RSTRING_LEN(argv[1]), RSTRING_PTR(argv[1]));
    int64_t now_ns = hd_clock_now();
    int64_t deadline_ns = hd_clock_deadline(now_ns, RESOLUTION_DELAY_MS * HD_NS_PER_MS);
    const char *special = special_address(argv[0]);
    connecting.found =
        hd_find_address(scheduler, special ? rb_str_new_cstr(special) : argv[0], service, deadline_ns);
    if (RB_TYPE_P(connecting.found, T_ARRAY)) {
        rb_rescue2(connect_to_found, (VALUE)&connecting, fail_to_connect, (VALUE)&connecting, rb_eSystemCallError,
                   rb_eIOTimeoutError, (VALUE)0);
    } else {
        VALUE began_at = DBL2NUM((double)now_ns / HD_NS_PER_SECOND);
        connect_by_name(self, scheduler, connecting.found, began_at, argc, argv);
    }
    return Qnil;
}

static VALUE connect_by_address(VALUE self, int argc, const VALUE *argv)
{
    hd_turn_spend_here(Qnil, HD_TURN_ENDS);
    return call_original(self, argc, argv, RB_PASS_CALLED_KEYWORDS);
}

static VALUE initialize(int argc, VALUE *argv, VALUE self)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    bool keywords = rb_keyword_given_p();
    if (NIL_P(scheduler) || !by_name(argc - keywords, argv) || !RTEST(rb_obj_is_kind_of(scheduler, hd_cScheduler)))
        return connect_by_address(self, argc, argv);
    if (!keywords && simple_p(argc, argv)) return connect_simply(self, scheduler, argc, argv);
    connect_by_name(self, scheduler, Qnil, Qnil, argc, argv);
    return Qnil;
}

void hd_init_tcp_connect(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "TCPSocketConnect");
    rb_define_private_method(extension, "initialize", initialize, -1);
    VALUE connect = rb_define_module_under(hd_mHeddle, "Connect");
    rb_define_const(connect, "RESOLUTION_DELAY", DBL2NUM(RESOLUTION_DELAY_MS / 1000.0));
    rb_define_singleton_method(connect, "by_name?", connect_by_name_p, 1);
    rb_define_singleton_method(connect, "check_seconds", connect_check_seconds, 1);
    rb_define_singleton_method(connect, "address_of", connect_address_of, 1);
}
