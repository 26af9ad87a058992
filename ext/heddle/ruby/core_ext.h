/* Helps the methods that replace Ruby's own; see lib/heddle/internal/replace.rb. */
#pragma once

#include <ruby.h>

/* The second name of Ruby's own method, after one of Heddle's has replaced it. The ID is found once. */
#define HD_KEPT(name) rb_intern("__heddle_" name)
