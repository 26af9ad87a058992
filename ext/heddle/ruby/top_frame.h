/* THE TOP FRAME: says whether the code that runs now is code in which a switch of fibers is as safe as at a wait. Asked
 * by a postponed job, which Ruby calls between two instructions.
 *
 * Problem: Ruby calls such jobs also while a method in C is on top. One of these is the switch of fibers itself: it
 * would lose the value that it carries. Way: rb_profile_frames, which profilers use, lists methods in C as well. Code
 * in Ruby may stop, and so may methods in C of classes that only compute: they are on top when they end, which is
 * where Ruby looks for jobs. If these had to go on, a loop that computes in them would hardly ever stop. Ruby's own
 * methods in Ruby may call C without a frame. Only files of which this is known to be harmless count as Ruby code:
 * those with Array#each, Integer#times and Kernel#loop. Folders may be exempt, such as Heddle's own: their code relies
 * on nobody running in between.
 *
 * Price: rb_profile_frames does not list a block that is written in C. The name of the running method shows such a
 * block on top of a method in Ruby, but not on top of code outside of any method, such as that of a script. */
#pragma once

#include "compat.h"

typedef enum { HD_TOP_COMPUTES, HD_TOP_IS_C, HD_TOP_IS_EXEMPT } hd_top;

/* Judges the top of the stack. A number of frames on top may be skipped. */
hd_top hd_top_frame(int skipped);

/* Does a function run here that the gem ffi has called? It may have called this code in Ruby. The gem keeps a list of
 * such calls for each thread, and the exceptions of their callbacks: a switch of fibers would mix them up. */
bool hd_in_foreign_call(void);

/* Makes code exempt, for good, in every file whose real path begins with this. */
void hd_exempt(VALUE prefix);
