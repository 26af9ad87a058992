/* Heddle::CoreExt::TCPSocketConnect, prepended to TCPSocket: a host that is a name goes to lib/heddle/connect. Here
 * because libraries ask Ruby for the parameters of this method (net-http, dalli), and because an address is to cost
 * nothing more. */
#include "tcp_connect.h"

#include "../os/resolve.h"
#include "scheduler.h"

/* Is the host no text of an address? What Ruby would refuse counts as none: Ruby says so better. */
static bool name_p(VALUE host)
{
    if (NIL_P(host)) return true;
    if (!RB_TYPE_P(host, T_STRING)) return false;
    const char *text = RSTRING_PTR(host);
    long length = RSTRING_LEN(host);
    char copy[64]; /* longer than any address, and the only one that ends with a NUL */
    if (length == 0 || memchr(text, '\0', (size_t)length)) return false;
    if (length >= (long)sizeof(copy)) return true;
    memcpy(copy, text, (size_t)length);
    copy[length] = '\0';
    return !hd_host_numeric(copy);
}

/* Is the port the name of a service? Ruby takes only numbers when a scheduler resolves. */
static bool service_name_p(VALUE port)
{
    if (!RB_TYPE_P(port, T_STRING)) return false;
    for (long i = 0; i < RSTRING_LEN(port); i++)
        if (RSTRING_PTR(port)[i] < '0' || RSTRING_PTR(port)[i] > '9') return true;
    return false;
}

/* The block that lib/heddle/connect calls: Ruby's own TCPSocket#initialize. (A block is not told of keywords.) */
static VALUE ruby_initialize(RB_BLOCK_CALL_FUNC_ARGLIST(first, unused))
{
    (void)first, (void)unused, (void)blockarg;
    bool keywords = argc > 0 && RB_TYPE_P(argv[argc - 1], T_HASH);
    return rb_call_super_kw(argc, argv, keywords ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS);
}

static VALUE initialize(int argc, VALUE *argv, VALUE self)
{
    VALUE scheduler = rb_fiber_scheduler_current();
    if (NIL_P(scheduler) || argc < 2 || !(name_p(argv[0]) || service_name_p(argv[1])) ||
        !RTEST(rb_obj_is_kind_of(scheduler, hd_cScheduler)))
        return rb_call_super_kw(argc, argv, RB_PASS_CALLED_KEYWORDS);
    VALUE connect = rb_const_get(hd_mHeddle, rb_intern("Connect")), memory;
    VALUE *arguments = rb_alloc_tmp_buffer(&memory, (long)(argc + 2) * (long)sizeof(VALUE));
    arguments[0] = self;
    arguments[1] = scheduler;
    memcpy(arguments + 2, argv, (size_t)argc * sizeof(VALUE));
    rb_block_call_kw(connect, rb_intern("open_tcp_socket"), argc + 2, arguments, ruby_initialize, Qnil,
                     RB_PASS_CALLED_KEYWORDS);
    rb_free_tmp_buffer(&memory);
    return Qnil;
}

void hd_init_tcp_connect(void)
{
    VALUE extension = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "TCPSocketConnect");
    rb_define_private_method(extension, "initialize", initialize, -1);
}
