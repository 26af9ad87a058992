/* Strings that go to a socket or a pipe, and come from it, without a hook of Ruby's in between. */
#pragma once

#include "io/transfer.h"

/* Begins a transfer of a socket or a pipe in a task. False: Ruby is to do it. */
bool hd_begin_directly(hd_transfer *call, hd_direction direction, VALUE io);

/* Writes the strings, which are of so many bytes together. How many, an Integer; or Qundef: nothing has been written,
 * Ruby has to do it. Several go to a socket only, and not more than so many. The array is the callee's. */
enum { HD_PARTS_MAX = 16 };
VALUE hd_write_directly(VALUE write_io, int count, VALUE *strings, long size);
