# frozen_string_literal: true

require "rbconfig"

# Refuses system calls to this process, as the seccomp profile of a container does (seccomp(2)).
module Seccomp
  PRCTL, EPOLL_CREATE1 = RbConfig::CONFIG["host_cpu"] == "aarch64" ? [167, 20] : [157, 291]
  IO_URING = [425, 426, 427].freeze # setup, enter, register: on all architectures
  SET_NO_NEW_PRIVS = 38
  SET_SECCOMP = 22
  MODE_FILTER = 2
  LOAD_NUMBER = [0x20, 0, 0, 0].freeze
  ALLOW = [0x06, 0, 0, 0x7fff0000].freeze

  # @param numbers [Array<Integer>] of the system calls
  # @param error [Class] with which they fail
  def self.refuse(*numbers, error: Errno::EPERM)
    jumps = numbers.each_with_index.map { |number, index| [0x15, numbers.size - index, 0, number] }
    program = [LOAD_NUMBER, *jumps, ALLOW, [0x06, 0, 0, 0x00050000 | error::Errno]]
    program.map! { |instruction| instruction.pack("SCCL") }
    given = [program.size, program.join].pack("Sx6P")
    verbose, $VERBOSE = $VERBOSE, nil # (syscall is deprecated)
    syscall(PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    syscall(PRCTL, SET_SECCOMP, MODE_FILTER, [given].pack("P").unpack1("J"), 0, 0)
  ensure
    $VERBOSE = verbose
  end
end
