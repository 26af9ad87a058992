/* The methods that only sockets have, in a task: recv, recvfrom, recvmsg, send, sendmsg, accept, and read_nonblock.
 *
 * The problem: Ruby has no hook for them. It releases the GVL for each attempt, and makes an attempt that finds nothing
 * before each wait.
 *
 * The way: `send` makes the system call here. The other methods wait here, and call the private methods that Ruby's
 * *_nonblock methods are made of, which take the same arguments and return the same. Everything unusual is left to
 * Ruby's own method.
 *
 * The price: a call whose arguments may be refused is tried before it waits, because it must fail at once. Such an
 * attempt may find nothing.
 *
 * Source: guides/patches.md (direct_socket). */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "fibers/pending/pending.h"
#include "fibers/turn.h"
#include "io/transfer.h"
#include "io/way.h"
#include "os/platform.h"
#include "ruby/init.h"
#include "ruby/ruby_internals.h"
#include "direct_io.h"

/* Not HD_KEPT, because another patch keeps two of the methods as well. */
#define KEPT(name) rb_intern("__heddle_direct_" name)

enum { ARGUMENTS_MAX = 6 };

static VALUE cBasicSocket, cTCPServer, cTCPSocket, cUNIXServer, cUNIXSocket;
static VALUE cUDPSocket, cAddrinfo, eEMFILE, eENFILE, eENOMEM;

/* Fills in the transfer. Returns false if Ruby must make the call. */
static bool begin(hd_transfer *call, hd_direction direction, VALUE io)
{
    hd_scheduler *scheduler = hd_scheduler_here();
    if (!scheduler || !RB_TYPE_P(io, T_FILE) || hd_io_descriptor(io) < 0) return false;
    *call = hd_transfer_of(scheduler, direction, io, HD_SOCKET);
    return true;
}

/* Has the call no flag? Then a fiber that waits for bytes waits for the right thing. */
static bool has_no_flag(VALUE flags)
{
    return NIL_P(flags) || flags == INT2FIX(0);
}

/* -- by Ruby's methods that do not wait ------------------------------------------------------------------------- */

/* A method whose last argument says that it returns a Symbol when it would have to wait. */
typedef struct {
    ID name;
    int argc;
    VALUE argv[ARGUMENTS_MAX];
    VALUE string; /* the string into which it receives, or 0 */
    bool refuses; /* its arguments may be refused: it is tried first */
    hd_transfer *call;
    bool locks;   /* the string is locked while the fiber waits */
    VALUE result;
} attempt;

/* Before a wait. As in plain Ruby, nobody may change the string meanwhile if the socket is in blocking mode. */
static void lock(attempt *attempt)
{
    attempt->locks = attempt->string && hd_in_blocking_mode(attempt->call->fd);
    if (attempt->locks) rb_str_locktmp(attempt->string);
}

static VALUE unlock(VALUE pointer)
{
    attempt *attempt = (void *)pointer;
    if (attempt->locks) rb_str_unlocktmp(attempt->string);
    attempt->locks = false;
    return Qnil;
}

static ssize_t call_method(hd_transfer *call, void *pointer)
{
    attempt *attempt = pointer;
    unlock((VALUE)attempt);
    attempt->result = rb_funcallv(call->io, attempt->name, attempt->argc, attempt->argv);
    if (!RB_SYMBOL_P(attempt->result)) return 0;
    lock(attempt);
    return -EAGAIN;
}

static VALUE run(VALUE pointer)
{
    attempt *attempt = (void *)pointer;
    bool wait = !attempt->refuses && hd_expects_to_wait(attempt->call);
    if (wait) lock(attempt);
    hd_transfer_run(attempt->call, wait, call_method, attempt);
    return attempt->result;
}

static VALUE call_when_ready(hd_transfer *call, attempt *attempt)
{
    attempt->call = call;
    return attempt->string ? rb_ensure(run, (VALUE)attempt, unlock, (VALUE)attempt) : run((VALUE)attempt);
}

/* Begins to receive. Bytes in Ruby's read buffer are an error, which Ruby raises. */
static bool begin_receive(hd_transfer *call, VALUE io)
{
    if (!begin(call, HD_READ, io) || !hd_io_is_plain(io, true)) return false;
    hd_pending_raise_overdue(call->scheduler);
    hd_transfer_meets_reader(call);
    return !call->others_ran || hd_io_is_plain(io, true);
}

/* Is it a size that recv takes? A wrong one is refused at once. */
static bool is_size(VALUE size)
{
    return RB_FIXNUM_P(size) && FIX2LONG(size) > 0;
}

static bool is_room(VALUE string)
{
    return NIL_P(string) || (RB_TYPE_P(string, T_STRING) && !RB_OBJ_FROZEN(string));
}

/* Calls one of the methods that take a size, flags and a string. */
static VALUE receive(ID nonblock, ID kept, int argc, const VALUE *argv, VALUE io)
{
    hd_transfer call;
    bool usual = argc > 0 && argc < 4 && (argc < 2 || has_no_flag(argv[1]));
    if (!usual || !begin_receive(&call, io)) return rb_funcallv(io, kept, argc, argv);
    attempt receive = {.name = nonblock, .argc = 4, .argv = {argv[0], INT2FIX(0), argc > 2 ? argv[2] : Qnil, Qfalse}};
    if (RB_TYPE_P(receive.argv[2], T_STRING)) receive.string = receive.argv[2];
    receive.refuses = !is_size(receive.argv[0]) || !is_room(receive.argv[2]);
    return call_when_ready(&call, &receive);
}

/* It never asks the ring for the bytes. What a fiber cannot take would go to Ruby's read buffer, where datagrams would
 * run into each other, and with which the other methods of this kind refuse to receive. */
static VALUE socket_recv(int argc, VALUE *argv, VALUE io)
{
    if (argc > 0 && argc < 4 && (argc < 2 || has_no_flag(argv[1])) && hd_io_has_put_back(io)) {
        VALUE arguments[] = {argv[0], argc > 2 ? argv[2] : Qnil};
        return rb_funcallv(io, rb_intern("readpartial"), 2, arguments);
    }
    return receive(rb_intern("__recv_nonblock"), KEPT("recv"), argc, argv, io);
}

/* Replaces IPSocket#recvfrom. Other sockets that know the name of their peer have no such method. A caller who wants a
 * name as well is served by the patch name_lookup. */
static VALUE ip_socket_recvfrom(int argc, VALUE *argv, VALUE io)
{
    ID kept = KEPT("recvfrom");
    bool usual = RTEST(rb_obj_is_kind_of(io, cUDPSocket)) && !NIL_P(rb_fiber_scheduler_current()) &&
                 RTEST(rb_funcallv(io, rb_intern("do_not_reverse_lookup"), 0, NULL));
    if (!usual) return rb_funcallv(io, kept, argc, argv);
    return receive(rb_intern("__recvfrom_nonblock"), kept, argc, argv, io);
}

static VALUE socket_recvfrom(int argc, VALUE *argv, VALUE io)
{
    return receive(rb_intern("__recvfrom_nonblock"), KEPT("recvfrom"), argc, argv, io);
}

/* recvmsg calls this method. */
static VALUE socket_recvmsg(VALUE io, VALUE size, VALUE flags, VALUE control_size, VALUE rights)
{
    hd_transfer call;
    ID nonblock = rb_intern("__recvmsg_nonblock");
    attempt receive = {.name = nonblock, .argc = 5, .argv = {size, flags, control_size, rights, Qfalse}};
    receive.refuses = !(NIL_P(size) || is_size(size)) || !(NIL_P(control_size) || is_size(control_size));
    if (has_no_flag(flags) && begin_receive(&call, io)) return call_when_ready(&call, &receive);
    return rb_funcallv(io, KEPT("__recvmsg"), 4, receive.argv);
}

/* sendmsg calls this method. */
static VALUE socket_sendmsg(VALUE io, VALUE text, VALUE flags, VALUE to, VALUE controls)
{
    hd_transfer call;
    attempt send = {.name = rb_intern("__sendmsg_nonblock"), .argc = 5, .argv = {text, flags, to, controls, Qfalse}};
    if (begin(&call, HD_WRITE, io) && !hd_in_blocking_mode(call.fd)) return call_when_ready(&call, &send);
    return rb_funcallv(io, KEPT("__sendmsg"), 4, send.argv);
}

/* read_nonblock calls this method. It never waits, so it counts against the turn of the task. */
static VALUE socket_read_nonblock(VALUE io, VALUE size, VALUE string, VALUE raises)
{
    VALUE argv[] = {size, string, raises};
    hd_turn_spend_here(io, HD_TURN_ENDS);
    return rb_funcallv(io, KEPT("__read_nonblock"), 3, argv);
}

static VALUE accept_when_ready(VALUE call)
{
    attempt accept = {.name = rb_intern("__accept_nonblock"), .argc = 1, .argv = {Qfalse}};
    return call_when_ready((hd_transfer *)call, &accept);
}

/* Accepts by Ruby's own method when no descriptor or no memory is left: it collects garbage, and tries once more. */
static VALUE accept_by_ruby(VALUE call, VALUE error)
{
    return rb_funcallv(((hd_transfer *)call)->io, KEPT("accept"), 0, NULL);
}

static bool listens(const hd_transfer *call)
{
    int answer = 0;
    socklen_t size = sizeof(answer);
    return getsockopt(call->fd, SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer;
}

static ssize_t look(hd_transfer *call, void *argument)
{
    return hd_poll_once(call->fd, POLLIN, 0) ? 0 : -EAGAIN;
}

/* Makes the object of an accepted connection, as Ruby does. */
static VALUE new_socket(VALUE class, int fd)
{
    VALUE socket = rb_io_open_descriptor(class, fd, FMODE_READWRITE | FMODE_DUPLEX | FMODE_SYNC, Qnil, Qnil, NULL);
    rb_funcallv(socket, rb_intern("binmode"), 0, NULL);
    VALUE without_names = rb_funcallv(cBasicSocket, rb_intern("do_not_reverse_lookup"), 0, NULL);
    rb_funcallv(socket, rb_intern("do_not_reverse_lookup="), 1, &without_names);
    return socket;
}

/* Returns the class of the connections of this server, or 0 if Ruby must make them. */
static VALUE class_of_connections(VALUE server)
{
    if (RTEST(rb_obj_is_kind_of(server, cTCPServer))) return cTCPSocket;
    return RTEST(rb_obj_is_kind_of(server, cUNIXServer)) ? cUNIXSocket : 0;
}

static ssize_t try_accept(hd_transfer *call, void *argument)
{
    int fd = hd_accept(call->fd);
    return fd == -ECONNABORTED || fd == -EPROTO ? -EAGAIN : fd;
}

/* Accepts a connection with one system call. Ruby would also set the mode of the listening socket. */
static VALUE accept_here(hd_transfer *call, VALUE class)
{
    int fd = (int)hd_transfer_run(call, hd_expects_to_wait(call), try_accept, NULL);
    if (fd >= 0) return new_socket(class, fd);
    if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM) return accept_by_ruby((VALUE)call, Qnil);
    rb_syserr_fail(-fd, "accept(2)");
}

/* Accepts a connection. An attempt that does not wait would take a socket out of the blocking mode. In that mode Ruby's
 * own method would stop the thread, also when another task has been faster. */
static VALUE server_accept(VALUE io)
{
    hd_transfer call;
    if (!begin(&call, HD_READ, io)) return rb_funcallv(io, KEPT("accept"), 0, NULL);
    call.accepts = true;
    if (!hd_accepts_without_blocking(&call)) {
        if (listens(&call)) hd_transfer_run(&call, true, look, NULL);
        return rb_funcallv(io, KEPT("accept"), 0, NULL);
    }
    VALUE class = class_of_connections(io);
    if (class) return accept_here(&call, class);
    return rb_rescue2(accept_when_ready, (VALUE)&call, accept_by_ruby, (VALUE)&call, eEMFILE, eENFILE, eENOMEM,
                      (VALUE)0);
}

/* -- send ------------------------------------------------------------------------------------------------------ */

/* Sends the string together with the requests of other fibers, if that saves a system call. The string may be changed
 * meanwhile, and the request made once more. So the bytes come from a copy. Returns the number of bytes sent. */
static long send_with_others(hd_transfer *call, VALUE string)
{
    size_t size = (size_t)RSTRING_LEN(string);
    if (size == 0 || !hd_write_shares_call(call, size)) return 0;
    char copy[HD_SHARED_WRITE_MAX];
    memcpy(copy, RSTRING_PTR(string), size);
    ssize_t moved = hd_transfer_send(call, copy, size);
    if (moved < 0 && moved != -EAGAIN) rb_syserr_fail((int)-moved, "send(2)");
    return moved < 0 ? 0 : moved;
}

typedef struct {
    VALUE string, to;
    int flags;
    long sent;
} sending;

/* Sends as much of the string as the kernel takes. Only a socket that does not block takes a part. */
static ssize_t try_send(hd_transfer *call, void *pointer)
{
    sending *sending = pointer;
    long left = RSTRING_LEN(sending->string) - sending->sent;
    if (left < 0) return 0; /* the string was changed meanwhile */
    const struct sockaddr *address = NIL_P(sending->to) ? NULL : (const struct sockaddr *)RSTRING_PTR(sending->to);
    ssize_t moved = sendto(call->fd, RSTRING_PTR(sending->string) + sending->sent, (size_t)left,
                           sending->flags | MSG_DONTWAIT, address, address ? (socklen_t)RSTRING_LEN(sending->to) : 0);
    if (moved < 0) return errno == EINTR ? -EAGAIN : -errno;
    sending->sent += moved;
    return moved < left && hd_in_blocking_mode(call->fd) ? -EAGAIN : 0;
}

static VALUE send_when_ready(hd_transfer *call, VALUE string, int flags, VALUE to)
{
    sending sending = {string, to, flags, NIL_P(to) && flags == 0 ? send_with_others(call, string) : 0};
    long sent = sending.sent;
    if (sent > 0 && (sent == RSTRING_LEN(string) || !hd_in_blocking_mode(call->fd))) return LONG2FIX(sent);
    ssize_t result = hd_transfer_run(call, false, try_send, &sending);
    if (result < 0 && sending.sent == 0) rb_syserr_fail((int)-result, NIL_P(to) ? "send(2)" : "sendto(2)");
    return LONG2FIX(sending.sent);
}

static bool is_address(VALUE to)
{
    return NIL_P(to) || RB_TYPE_P(to, T_STRING) || rb_obj_class(to) == cAddrinfo;
}

/* Returns the address in the kernel's form, or nil. */
static VALUE address_of(VALUE to)
{
    if (NIL_P(to)) return Qnil;
    return RB_TYPE_P(to, T_STRING) ? rb_str_new_frozen(to) : rb_funcallv(to, rb_intern("to_sockaddr"), 0, NULL);
}

static VALUE socket_send(int argc, VALUE *argv, VALUE io)
{
    hd_transfer call;
    bool usual = (argc == 2 || (argc == 3 && is_address(argv[2]))) && RB_TYPE_P(argv[0], T_STRING) &&
                 RB_FIXNUM_P(argv[1]);
    if (!usual || !begin(&call, HD_WRITE, io)) return rb_funcallv(io, KEPT("send"), argc, argv);
    VALUE to = argc == 3 ? address_of(argv[2]) : Qnil;
    VALUE sent = send_when_ready(&call, argv[0], NUM2INT(argv[1]), to);
    RB_GC_GUARD(to);
    return sent;
}

static VALUE class_named(VALUE module, const char *name)
{
    VALUE class = rb_const_get(module, rb_intern(name));
    rb_gc_register_mark_object(class);
    return class;
}

void hd_init_direct_socket(void)
{
    cBasicSocket = class_named(rb_cObject, "BasicSocket");
    cTCPServer = class_named(rb_cObject, "TCPServer");
    cTCPSocket = class_named(rb_cObject, "TCPSocket");
    cUNIXServer = class_named(rb_cObject, "UNIXServer");
    cUNIXSocket = class_named(rb_cObject, "UNIXSocket");
    cUDPSocket = class_named(rb_cObject, "UDPSocket");
    cAddrinfo = class_named(rb_cObject, "Addrinfo");
    eEMFILE = class_named(rb_mErrno, "EMFILE");
    eENFILE = class_named(rb_mErrno, "ENFILE");
    eENOMEM = class_named(rb_mErrno, "ENOMEM");
    VALUE sockets = rb_define_module_under(rb_define_module_under(hd_mHeddle, "CoreExt"), "DirectSocket");
    VALUE basic = rb_define_module_under(sockets, "ForBasicSocket");
    rb_define_method(basic, "recv", socket_recv, -1);
    rb_define_method(basic, "send", socket_send, -1);
    rb_define_private_method(basic, "__recvmsg", socket_recvmsg, 4);
    rb_define_private_method(basic, "__sendmsg", socket_sendmsg, 4);
    rb_define_private_method(basic, "__read_nonblock", socket_read_nonblock, 3);
    rb_define_method(rb_define_module_under(sockets, "ForUDPSocket"), "send", socket_send, -1);
    rb_define_method(rb_define_module_under(sockets, "ForIPSocket"), "recvfrom", ip_socket_recvfrom, -1);
    rb_define_method(rb_define_module_under(sockets, "ForSocket"), "recvfrom", socket_recvfrom, -1);
    rb_define_method(rb_define_module_under(sockets, "Accept"), "accept", server_accept, 0);
}
