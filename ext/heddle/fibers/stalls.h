/* STALLS (HEDDLE_STALLS): finds the fiber that keeps the loop from turning, while it does.
 *
 * Problem: a Ruby thread looks now and then (lib/heddle/internal/stalls.rb). But while a method in C holds the GVL,
 * that thread cannot run, and afterwards it comes too late. Way: the watch (watch.h) looks without the GVL as well. It
 * orders a look in the thread that holds the GVL, and Ruby makes this look as soon as the method returns.
 *
 * Price: each switch notes when the fiber began to run. */
#pragma once

