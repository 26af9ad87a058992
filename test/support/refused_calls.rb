# frozen_string_literal: true

# Runs a command where the kernel refuses system calls: ruby refused_calls.rb PROFILE COMMAND ARGUMENT ...
#
# io_uring   as in a container whose seccomp profile forbids io_uring
# new        as in a sandbox that knows no system call of Linux 4.6 and later (gVisor, an old seccomp profile)
#
# (seccomp(2); the numbers from 424 on are those of all architectures.)
require "rbconfig"

ARM = RbConfig::CONFIG["host_cpu"] == "aarch64"
PRCTL = ARM ? 167 : 157
SET_NO_NEW_PRIVS = 38
SET_SECCOMP = 22
MODE_FILTER = 2
IO_URING = [425, 426, 427].freeze # setup, enter, register
# copy_file_range, preadv2, pwritev2, statx, rseq; all later ones have a number of at least FIRST_NEW.
RECENT = (ARM ? [285, 286, 287, 291, 293] : [326, 327, 328, 332, 334]).freeze
FIRST_NEW = 424
LOAD_NUMBER = [0x20, 0, 0, 0].freeze
IF_EQUAL = 0x15
IF_AT_LEAST = 0x35
ALLOW = [0x06, 0, 0, 0x7fff0000].freeze

def refuse(errno) = [0x06, 0, 0, 0x00050000 | errno]

tests, errno = {
  "io_uring" => [IO_URING.map { |number| [IF_EQUAL, number] }, Errno::EPERM::Errno],
  "new" => [[*RECENT.map { |number| [IF_EQUAL, number] }, [IF_AT_LEAST, FIRST_NEW]], Errno::ENOSYS::Errno]
}.fetch(ARGV.shift)
jumps = tests.map.with_index { |(test, number), index| [test, tests.size - index, 0, number] }
program = [LOAD_NUMBER, *jumps, ALLOW, refuse(errno)].map { |instruction| instruction.pack("SCCL") }
given = [program.size, program.join].pack("Sx6P")
pointer = [given].pack("P").unpack1("J")
$VERBOSE = nil # (syscall is deprecated)
syscall(PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0)
syscall(PRCTL, SET_SECCOMP, MODE_FILTER, pointer, 0, 0)
exec(*ARGV)
