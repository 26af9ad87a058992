# frozen_string_literal: true

require "rbconfig"

# Refuses system calls to this process, as the seccomp profile of a container does (seccomp(2)).
module Seccomp
  ARM = RbConfig::CONFIG["host_cpu"] == "aarch64"
  PRCTL = ARM ? 167 : 157
  EPOLL_CREATE1 = ARM ? 20 : 291
  # Setup, enter, register. The numbers from FIRST_NEW on are those of all architectures.
  IO_URING = [425, 426, 427].freeze
  FIRST_NEW = 424
  # copy_file_range, preadv2, pwritev2, statx, rseq: of Linux 4.6 and later, as all from FIRST_NEW on.
  RECENT = (ARM ? [285, 286, 287, 291, 293] : [326, 327, 328, 332, 334]).freeze

  SET_NO_NEW_PRIVS = 38
  SET_SECCOMP = 22
  MODE_FILTER = 2
  LOAD_NUMBER = [0x20, 0, 0, 0].freeze
  IF_EQUAL = 0x15
  IF_AT_LEAST = 0x35
  ALLOW = [0x06, 0, 0, 0x7fff0000].freeze

  # @param numbers [Array<Integer>] of the system calls
  # @param from [Integer, nil] it and all greater numbers are refused, too
  # @param error [Class] with which they fail
  def self.refuse(*numbers, from: nil, error: Errno::EPERM)
    tests = numbers.map { |number| [IF_EQUAL, number] }
    tests << [IF_AT_LEAST, from] if from
    jumps = tests.each_with_index.map { |(test, number), index| [test, tests.size - index, 0, number] }
    program = [LOAD_NUMBER, *jumps, ALLOW, [0x06, 0, 0, 0x00050000 | error::Errno]]
    program.map! { |instruction| instruction.pack("SCCL") }
    given = [program.size, program.join].pack("Sx6P")
    verbose = $VERBOSE
    $VERBOSE = nil # (syscall is deprecated)
    syscall(PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    syscall(PRCTL, SET_SECCOMP, MODE_FILTER, [given].pack("P").unpack1("J"), 0, 0)
  ensure
    $VERBOSE = verbose
  end
end
