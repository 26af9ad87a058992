# frozen_string_literal: true

# Builds heddle_native. Each folder is a layer, which may use those before it: core/ (no system calls, no Ruby), os/
# (system calls, no Ruby), ruby/, fibers/, io/, hooks/, core_ext/. guides/design.md says what is in each.
#
# HEDDLE_VARIANT   release (default), assert (HD_VERIFY on), faults (assert, and system calls fail on demand: only in
#                  the repository, see test/faults/inject.c), opaque (assert, and nothing is known about the insides
#                  of an IO, as it may be with a later Ruby), portable (assert, and Linux is not known: see
#                  os/platform.h), asan, ubsan, tsan
# HEDDLE_PEDANTIC  any value: warnings are errors
# --with-kqueue=DIR  (an option of extconf.rb) the kqueue backend, too, with libkqueue, which is installed in DIR. It
#                  lets the tests of this backend run on Linux.
require "mkmf"
require_relative "../../lib/heddle/internal/ruby_features"

VARIANTS = {
  "release" => [],
  "assert" => %w[-DHEDDLE_ASSERT_BUILD -g],
  "faults" => %w[-DHEDDLE_ASSERT_BUILD -g -U_FORTIFY_SOURCE],
  "opaque" => %w[-DHEDDLE_ASSERT_BUILD -g],
  "portable" => %w[-DHEDDLE_ASSERT_BUILD -DHEDDLE_PORTABLE -g],
  "asan" => %w[-DHEDDLE_ASSERT_BUILD -g -fsanitize=address -fno-omit-frame-pointer],
  "ubsan" => %w[-DHEDDLE_ASSERT_BUILD -g -fsanitize=undefined -fno-sanitize-recover=undefined],
  "tsan" => %w[-DHEDDLE_ASSERT_BUILD -g -fsanitize=thread]
}.freeze

variant = ENV.fetch("HEDDLE_VARIANT", "release")
flags = VARIANTS.fetch(variant) { abort "HEDDLE_VARIANT: #{variant.inspect} is not one of #{VARIANTS.keys.join(", ")}" }

linux = RbConfig::CONFIG.fetch("host_os").include?("linux")
unless Heddle::RubyFeatures.at_least?(Heddle::RubyFeatures::OLDEST)
  abort "Heddle needs Ruby #{Heddle::RubyFeatures::OLDEST} or newer, this is #{RUBY_VERSION}."
end
if linux && !have_header("linux/io_uring.h")
  abort "Heddle needs linux/io_uring.h (package linux-libc-dev on Debian, linux-headers on Alpine)."
end
have_struct_member("rb_io_t", "wbuf", ["ruby.h", "ruby/io.h"]) unless variant == "opaque"

layers = %w[core os ruby fibers fibers/pending io hooks core_ext]
$srcs = layers.flat_map { |layer| Dir[File.join(__dir__, layer, "*.c")].sort }
if (kqueue = with_config("kqueue"))
  dir_config("kqueue", File.join(kqueue, "include/kqueue"), File.join(kqueue, "lib"))
  abort "There is no libkqueue in #{kqueue}." unless have_library("kqueue", "kqueue", "sys/event.h")
  $defs << "-DHEDDLE_KQUEUE"
  $LDFLAGS << " -Wl,-rpath,#{File.join(kqueue, "lib")}"
end
# The backends that this system does not have (HD_HAS_LINUX and HD_KQUEUE_BACKEND of os/platform.h).
absent = []
absent << %r{/(backend_epoll|backend_uring|uring_\w+)\.c\z} if !linux || variant == "portable"
absent << %r{/backend_kqueue\.c\z} if linux ? !kqueue : !have_header("sys/event.h")
$srcs.reject! { |source| absent.any? { |pattern| source.match?(pattern) } }
$VPATH.concat(layers.map { |layer| "$(srcdir)/#{layer}" })
if variant == "faults"
  injection = File.expand_path("../../test/faults/inject.c", __dir__)
  names = File.read(injection).scan(/__wrap_([a-z]\w+)\(|^WRAP\w*\([^,(]+, (\w+)/).flatten.compact.uniq
  $srcs << injection
  $VPATH << File.dirname(injection)
  $LDFLAGS << names.map { |name| " -Wl,--wrap=#{name}" }.join
end
# Every object depends on the headers, and on the flags that are set here.
$headers.concat(["extconf.rb", *Dir["{#{layers.join(",")}}/*.h", base: __dir__]].map { |name| "$(srcdir)/#{name}" })
$INCFLAGS << " -I$(srcdir)"
$CFLAGS << " -std=gnu11 -fvisibility=hidden -D_GNU_SOURCE"
$warnflags = "-Wall -Wextra -Wno-unused-parameter" if $warnflags.nil?
# Ruby gives self to each method and an argument to each callback, needed or not. The C tests compile core/ and os/ with
# this warning on.
append_cflags(%w[-Wall -Wextra -Wno-unused-parameter])
append_cflags("-Werror") if ENV["HEDDLE_PEDANTIC"]
# GCC would clear each small record with `rep stos`, which takes longer to begin than to write: a twelfth of a switch.
append_cflags("-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign")
# A switch of fibers passes through five files: the compiler may look at all of them together.
joined = %w[-flto=auto -flto].find { |flag| variant == "release" && try_link(MAIN_DOES_NOTHING, flag) }
[$CFLAGS, $LDFLAGS].each { |all| all << " #{joined}" } if joined
flags.each { |flag| $CFLAGS << " #{flag}" }
$LDFLAGS << " #{flags.grep(/sanitize/).join(" ")}"

# Not linked against libruby: the process that loads it has one, so a build serves shared and static Rubies alike.
$LIBRUBYARG = $LIBRUBYARG_SHARED = $LIBRUBYARG_STATIC = ""

create_makefile("heddle/heddle_native")
