/* Names of services ("http") in place of ports.
 *
 * The problem: with the hook address_resolve, Ruby up to 4.0 makes the addresses by itself and knows only numbers as
 * ports. Every name of a service makes the host unknown.
 *
 * The way: in a fiber of Heddle, the methods that take a service pass its number to Ruby's own method.
 *
 * Source: guides/patches.md (service_names). */
#include <netdb.h>
#include <string.h>

#include "fibers/scheduler.h"
#include "ruby/core_ext.h"
#include "ruby/init.h"
#include "service_names.h"

/* NO: the method does not have that argument. */
enum { ARGUMENTS_MAX = 8, HINTS = 4, NO = ARGUMENTS_MAX };

bool hd_plain_port_p(VALUE port)
{
    if (FIXNUM_P(port)) return FIX2LONG(port) >= 0 && FIX2LONG(port) <= UINT16_MAX;
    if (!RB_TYPE_P(port, T_STRING)) return true;
    const char *text = StringValueCStr(port);
    return strspn(text, "0123456789") == strlen(text) && strtoul(text, NULL, 10) <= UINT16_MAX;
}

/* Returns the address that Ruby makes for the service without a host, because it asks no hook then. Raises Ruby's own
 * error for a service that is not known, or not for this type of socket. The hints are family, type, protocol and
 * flags. */
static VALUE known_as(VALUE service, const VALUE hints[HINTS])
{
    VALUE addrinfo = rb_const_get(rb_cObject, rb_intern("Addrinfo"));
    if (FIXNUM_P(service)) service = rb_fix2str(service, 10); /* an Addrinfo has no room for the largest numbers */
    /* this flag needs a host */
    VALUE flags = FIXNUM_P(hints[3]) ? LONG2FIX(FIX2LONG(hints[3]) & ~AI_CANONNAME) : hints[3];
    return rb_funcall(addrinfo, HD_KEPT("getaddrinfo"), 6, Qnil, service, hints[0], hints[1], hints[2], flags);
}

static VALUE port_of(VALUE known)
{
    return rb_funcall(rb_ary_entry(known, 0), rb_intern("ip_port"), 0);
}

/* Puts the number of the port in place of this argument, if a host is given. Returns true if the argument has changed.
 */
static bool number(int argc, VALUE *argv, int service, int host, const VALUE hints[HINTS])
{
    if (service >= argc || host >= argc || NIL_P(argv[host]) || hd_plain_port_p(argv[service])) return false;
    argv[service] = port_of(known_as(argv[service], hints));
    return true;
}

typedef struct {
    VALUE self;
    ID kept;
    int argc;
    const VALUE *argv;
    VALUE error; /* the error that the original has raised, or Qfalse */
} call;

static VALUE call_kept(VALUE argument)
{
    const call *own = (const call *)argument;
    return rb_funcallv_kw(own->self, own->kept, own->argc, own->argv, RB_PASS_CALLED_KEYWORDS);
}

static VALUE note_error(VALUE argument, VALUE error)
{
    return ((call *)argument)->error = error;
}

/* Returns an error of the same kind that names the service as it was given. */
static VALUE renamed(VALUE error, VALUE port, VALUE service)
{
    VALUE message = rb_funcall(error, rb_intern("message"), 0), end = rb_sprintf(" port %" PRIsVALUE, port);
    if (!RTEST(rb_funcall(message, rb_intern("delete_suffix!"), 1, end))) return error;
    VALUE other = rb_sprintf("%" PRIsVALUE " port %" PRIsVALUE, message, service);
    return rb_funcall(error, rb_intern("exception"), 1, other);
}

/* Returns what was found. Raises for a number that is too large for Ruby's Addrinfo; an entry of Socket.getaddrinfo has
 * room for it. */
static VALUE with_room(VALUE self, VALUE found, VALUE service)
{
    VALUE addrinfo = rb_const_get(rb_cObject, rb_intern("Addrinfo"));
    if (FIXNUM_P(service) && RB_TYPE_P(self, T_CLASS) && RTEST(rb_class_inherited_p(self, addrinfo)))
        (void)NUM2INT(service);
    return found;
}

/* Calls Ruby's own method with the numbers of the services. */
static VALUE with_ports(VALUE self, ID kept, int argc, VALUE *argv, const int places[4], VALUE socktype)
{
    if (argc > ARGUMENTS_MAX || !hd_scheduler_of_thread())
        return rb_funcallv_kw(self, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE arguments[ARGUMENTS_MAX];
    memcpy(arguments, argv, sizeof(VALUE) * (size_t)argc);
    const VALUE hints[HINTS] = {Qnil, socktype, Qnil, Qnil};
    bool other = number(argc, arguments, places[0], places[1], hints);
    number(argc, arguments, places[2], places[3], hints);
    call own = {self, kept, argc, arguments, Qfalse};
    if (!other) return call_kept((VALUE)&own);
    VALUE done = rb_rescue2(call_kept, (VALUE)&own, note_error, (VALUE)&own, rb_eSystemCallError, (VALUE)0);
    if (own.error) rb_exc_raise(renamed(own.error, arguments[places[0]], argv[places[0]]));
    return with_room(self, done, argv[places[0]]);
}

/* A method whose arguments `service` (with the host at `host`) and `own` (likewise) may be services. */
#define METHOD(function, name, socktype, service, host, own, own_host)             \
    static VALUE function(int argc, VALUE *argv, VALUE self)                       \
    {                                                                              \
        const int places[] = {service, host, own, own_host};                       \
        return with_ports(self, HD_KEPT(name), argc, argv, places, socktype);      \
    }

#define STREAM INT2FIX(SOCK_STREAM)
#define DATAGRAM INT2FIX(SOCK_DGRAM)

METHOD(addrinfo_tcp, "tcp", STREAM, 1, 0, NO, NO)                 /* (host, service) */
METHOD(addrinfo_udp, "udp", DATAGRAM, 1, 0, NO, NO)               /* (host, service) */
METHOD(pack_sockaddr_in, "pack_sockaddr_in", Qnil, 0, 1, NO, NO)  /* (service, host) */
METHOD(sockaddr_in, "sockaddr_in", Qnil, 0, 1, NO, NO)            /* (service, host) */
METHOD(udp_bind, "bind", DATAGRAM, 1, 0, NO, NO)                  /* (host, service) */
METHOD(udp_connect, "connect", DATAGRAM, 1, 0, NO, NO)            /* (host, service) */
METHOD(udp_send, "send", DATAGRAM, 3, 2, NO, NO)                  /* (text, flags, host, service) */
METHOD(tcp_socket_initialize, "initialize", STREAM, 1, 0, 3, 2)   /* (host, service, own host, own service) */
METHOD(tcp_server_initialize, "initialize", STREAM, 1, 0, NO, NO) /* ([host,] service) */

/* Is the entry for a type of socket that the service has? It is an Addrinfo, or an entry of Socket.getaddrinfo. */
static bool offered(VALUE entry, VALUE known)
{
    bool array = RB_TYPE_P(entry, T_ARRAY);
    VALUE type = array ? rb_ary_entry(entry, 5) : rb_funcall(entry, rb_intern("socktype"), 0);
    VALUE protocol = array ? rb_ary_entry(entry, 6) : rb_funcall(entry, rb_intern("protocol"), 0);
    for (long i = 0; i < RARRAY_LEN(known); i++) {
        VALUE one = rb_ary_entry(known, i);
        if (rb_funcall(one, rb_intern("socktype"), 0) == type && rb_funcall(one, rb_intern("protocol"), 0) == protocol)
            return true;
    }
    return false;
}

/* (host, service, family, type, protocol, flags, ...): returns the addresses for the types of sockets that the service
 * has. */
static VALUE addrinfo_getaddrinfo(int argc, VALUE *argv, VALUE self)
{
    ID kept = HD_KEPT("getaddrinfo");
    int given = argc - (rb_keyword_given_p() ? 1 : 0);
    if (given < 2 || argc > ARGUMENTS_MAX || NIL_P(argv[0]) || !hd_scheduler_of_thread() || hd_plain_port_p(argv[1]))
        return rb_funcallv_kw(self, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE hints[HINTS];
    for (int i = 0; i < HINTS; i++) hints[i] = 2 + i < given ? argv[2 + i] : Qnil;
    VALUE arguments[ARGUMENTS_MAX];
    memcpy(arguments, argv, sizeof(VALUE) * (size_t)argc);
    VALUE known = known_as(argv[1], hints);
    arguments[1] = port_of(known);
    VALUE all = rb_funcallv_kw(self, kept, argc, arguments, RB_PASS_CALLED_KEYWORDS), found = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(all); i++)
        if (offered(rb_ary_entry(all, i), known)) rb_ary_push(found, rb_ary_entry(all, i));
    return with_room(self, found, argv[1]);
}

void hd_init_service_names(void)
{
    VALUE services = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "ServiceNames");
    VALUE addrinfo = rb_define_module_under(services, "ForAddrinfo");
    rb_define_method(addrinfo, "getaddrinfo", addrinfo_getaddrinfo, -1);
    rb_define_method(addrinfo, "tcp", addrinfo_tcp, -1);
    rb_define_method(addrinfo, "udp", addrinfo_udp, -1);
    VALUE socket = rb_define_module_under(services, "ForSocket");
    rb_define_method(socket, "getaddrinfo", addrinfo_getaddrinfo, -1);
    rb_define_method(socket, "pack_sockaddr_in", pack_sockaddr_in, -1);
    rb_define_method(socket, "sockaddr_in", sockaddr_in, -1);
    VALUE udp = rb_define_module_under(services, "ForUDPSocket");
    rb_define_method(udp, "bind", udp_bind, -1);
    rb_define_method(udp, "connect", udp_connect, -1);
    rb_define_method(udp, "send", udp_send, -1);
    rb_define_private_method(rb_define_module_under(services, "ForTCPSocket"), "initialize", tcp_socket_initialize, -1);
    rb_define_private_method(rb_define_module_under(services, "ForTCPServer"), "initialize", tcp_server_initialize, -1);
}
