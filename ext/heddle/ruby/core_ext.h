/* What the methods that take the place of Ruby's own share; see lib/heddle/internal/replace.rb. */
#pragma once

#include <ruby.h>

/* The name under which Ruby's own method is kept, whose place one of Heddle's has taken. (An ID that is found once.) */
#define HD_KEPT(name) rb_intern("__heddle_" name)
