/* Strings that go to a socket or a pipe, and come from it, without a hook of Ruby's in between. */
#pragma once

#include "io/transfer.h"

/* Begins a transfer of a socket or a pipe in a task. Returns false if Ruby must make it. */
bool hd_begin_directly(hd_transfer *call, hd_direction direction, VALUE io);

/* Prepares a read that was begun in this way: another task may read from the same connection. Returns false if Ruby
 * must read. */
bool hd_begin_direct_read(hd_transfer *call);

/* Takes the bytes that were received with the end of a wait: copies them to that memory, unless it is hd_read_memory.
 * Returns their number, or -errno. HD_LEFT_TO_RUBY: other fibers have filled Ruby's buffer meanwhile, and the bytes
 * were put behind its content; or the IO is closed, which Ruby reports. */
ssize_t hd_take_received(const hd_transfer *call, char *memory);

/* Writes the strings, whose total size is given. Returns the number of bytes as an Integer, or Qundef if nothing has
 * been written and Ruby must write. Several strings go to a socket only, and at most HD_PARTS_MAX of them. The callee
 * may change the array. */
enum { HD_PARTS_MAX = 16 };
VALUE hd_write_directly(VALUE write_io, int count, VALUE *strings, long size);
