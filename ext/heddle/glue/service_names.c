/* Names of services ("http") in place of ports. With the hook address_resolve Ruby (up to 4.0) makes the addresses by
 * itself and knows only numbers there: every name of a service is an unknown host. In a fiber of Heddle the methods
 * that take one get the number. */
#include "service_names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "core_ext.h"

enum { ARGUMENTS_MAX = 8 };

/* The number of a named service; anything else, or a name that is not known, as it is. */
static VALUE port_of(VALUE service)
{
    if (!RB_TYPE_P(service, T_STRING)) return service;
    const char *name = StringValueCStr(service);
    if (!*name || strspn(name, "0123456789") == strlen(name)) return service;
    const struct servent *entry = getservbyname(name, NULL);
    return entry ? INT2FIX(ntohs((uint16_t)entry->s_port)) : service;
}

static VALUE with_ports(VALUE self, int argc, VALUE *argv, int first, int second)
{
    if (argc <= first || argc > ARGUMENTS_MAX || !hd_scheduler_of_thread())
        return hd_call_original(self, argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE arguments[ARGUMENTS_MAX];
    memcpy(arguments, argv, sizeof(VALUE) * (size_t)argc);
    arguments[first] = port_of(arguments[first]);
    if (second < argc) arguments[second] = port_of(arguments[second]);
    return hd_call_original(self, argc, arguments, RB_PASS_CALLED_KEYWORDS);
}

/* (host, service, ...): Addrinfo.getaddrinfo, .tcp, .udp; Socket.getaddrinfo; UDPSocket#bind, #connect */
static VALUE after_host(int argc, VALUE *argv, VALUE self)
{
    return with_ports(self, argc, argv, 1, ARGUMENTS_MAX);
}

/* (service, host): Socket.pack_sockaddr_in, .sockaddr_in */
static VALUE before_host(int argc, VALUE *argv, VALUE self)
{
    return with_ports(self, argc, argv, 0, ARGUMENTS_MAX);
}

/* (host, service, local host, local service): TCPSocket.new */
static VALUE after_two_hosts(int argc, VALUE *argv, VALUE self)
{
    return with_ports(self, argc, argv, 1, 3);
}

/* ([host,] service): TCPServer.new */
static VALUE at_the_end(int argc, VALUE *argv, VALUE self)
{
    return with_ports(self, argc, argv, argc - 1, ARGUMENTS_MAX);
}

/* (text, flags, host, service): UDPSocket#send */
static VALUE after_text_and_host(int argc, VALUE *argv, VALUE self)
{
    return with_ports(self, argc, argv, 3, ARGUMENTS_MAX);
}

void hd_init_service_names(void)
{
    VALUE services = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "ServiceNames");
    VALUE addrinfo = rb_define_module_under(services, "ForAddrinfo");
    rb_define_method(addrinfo, "getaddrinfo", after_host, -1);
    rb_define_method(addrinfo, "tcp", after_host, -1);
    rb_define_method(addrinfo, "udp", after_host, -1);
    VALUE socket = rb_define_module_under(services, "ForSocket");
    rb_define_method(socket, "getaddrinfo", after_host, -1);
    rb_define_method(socket, "pack_sockaddr_in", before_host, -1);
    rb_define_method(socket, "sockaddr_in", before_host, -1);
    VALUE udp = rb_define_module_under(services, "ForUDPSocket");
    rb_define_method(udp, "bind", after_host, -1);
    rb_define_method(udp, "connect", after_host, -1);
    rb_define_method(udp, "send", after_text_and_host, -1);
    rb_define_private_method(rb_define_module_under(services, "ForTCPSocket"), "initialize", after_two_hosts, -1);
    rb_define_private_method(rb_define_module_under(services, "ForTCPServer"), "initialize", at_the_end, -1);
}
