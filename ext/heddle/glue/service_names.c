/* Names of services ("http") in place of ports. With the hook address_resolve Ruby (up to 4.0) makes the addresses by
 * itself and knows only numbers there: every name of a service is an unknown host. In a fiber of Heddle the methods
 * that take one get the number. */
#include "core_ext.h"
#include "init.h"
#include "scheduler.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>


enum { ARGUMENTS_MAX = 8 };

/* Raises what Ruby does of a service that is not known: where no host is given, it asks no hook. (getaddrinfo looks at
 * its other arguments first.) */
static void refuse(VALUE self, ID kept, int argc, VALUE *argv, VALUE service)
{
    VALUE addrinfo = rb_const_get(rb_cObject, rb_intern("Addrinfo"));
    if (kept != HD_KEPT("getaddrinfo")) {
        rb_funcall(addrinfo, HD_KEPT("getaddrinfo"), 2, Qnil, service);
        return;
    }
    VALUE host = argv[0];
    argv[0] = Qnil;
    rb_funcallv_kw(self, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    argv[0] = host;
}

/* The number of a named service; anything else, or a name that is not known, as it is. */
static VALUE port_of(VALUE service, bool *unknown)
{
    if (!RB_TYPE_P(service, T_STRING)) return service;
    const char *name = StringValueCStr(service);
    if (!*name || strspn(name, "0123456789") == strlen(name)) return service;
    const struct servent *entry = getservbyname(name, NULL);
    if (!entry) *unknown = true;
    return entry ? INT2FIX(ntohs((uint16_t)entry->s_port)) : service;
}

/* Calls Ruby's own method with the numbers of these arguments. */
static VALUE with_ports(VALUE self, ID kept, int argc, VALUE *argv, int first, int second)
{
    if (argc <= first || argc > ARGUMENTS_MAX || !hd_scheduler_of_thread())
        return rb_funcallv_kw(self, kept, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE arguments[ARGUMENTS_MAX];
    memcpy(arguments, argv, sizeof(VALUE) * (size_t)argc);
    bool unknown = false;
    arguments[first] = port_of(arguments[first], &unknown);
    if (unknown) refuse(self, kept, argc, arguments, arguments[first]);
    if (second < argc) arguments[second] = port_of(arguments[second], &unknown);
    return rb_funcallv_kw(self, kept, argc, arguments, RB_PASS_CALLED_KEYWORDS);
}

/* A method whose arguments `first` and `second` may be services. */
#define METHOD(function, name, first, second)                                      \
    static VALUE function(int argc, VALUE *argv, VALUE self)                       \
    {                                                                              \
        return with_ports(self, HD_KEPT(name), argc, argv, first, second);         \
    }

METHOD(addrinfo_getaddrinfo, "getaddrinfo", 1, ARGUMENTS_MAX)        /* (host, service, ...) */
METHOD(addrinfo_tcp, "tcp", 1, ARGUMENTS_MAX)                        /* (host, service) */
METHOD(addrinfo_udp, "udp", 1, ARGUMENTS_MAX)                        /* (host, service) */
METHOD(pack_sockaddr_in, "pack_sockaddr_in", 0, ARGUMENTS_MAX)       /* (service, host) */
METHOD(sockaddr_in, "sockaddr_in", 0, ARGUMENTS_MAX)                 /* (service, host) */
METHOD(udp_bind, "bind", 1, ARGUMENTS_MAX)                           /* (host, service) */
METHOD(udp_connect, "connect", 1, ARGUMENTS_MAX)                     /* (host, service) */
METHOD(udp_send, "send", 3, ARGUMENTS_MAX)                           /* (text, flags, host, service) */
METHOD(tcp_socket_initialize, "initialize", 1, 3)                    /* (host, service, own host, own service) */
METHOD(tcp_server_initialize, "initialize", argc - 1, ARGUMENTS_MAX) /* ([host,] service) */

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
