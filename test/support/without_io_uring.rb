# frozen_string_literal: true

# Runs a command as in a container whose seccomp profile forbids io_uring: ruby without_io_uring.rb COMMAND ARGUMENT ...
# (seccomp(2); the numbers are those of all architectures for io_uring, and of x86-64 and arm64 for prctl.)
require "rbconfig"

PRCTL = RbConfig::CONFIG["host_cpu"] == "aarch64" ? 167 : 157
SET_NO_NEW_PRIVS = 38
SET_SECCOMP = 22
MODE_FILTER = 2
IO_URING = 425..427 # setup, enter, register
LOAD_NUMBER = [0x20, 0, 0, 0].freeze
REFUSE = [0x06, 0, 0, 0x00050000 | Errno::EPERM::Errno].freeze
ALLOW = [0x06, 0, 0, 0x7fff0000].freeze

jumps = IO_URING.map { |number| [0x15, IO_URING.last - number + 1, 0, number] }
program = [LOAD_NUMBER, *jumps, ALLOW, REFUSE].map { |instruction| instruction.pack("SCCL") }
given = [program.size, program.join].pack("Sx6P")
pointer = [given].pack("P").unpack1("J")
$VERBOSE = nil # (syscall is deprecated)
syscall(PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0)
syscall(PRCTL, SET_SECCOMP, MODE_FILTER, pointer, 0, 0)
exec(*ARGV)
