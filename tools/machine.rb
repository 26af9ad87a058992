# frozen_string_literal: true

require "rbconfig"
require_relative "support"

module Tools
  # How quick this machine is in what tests do most: system calls, page faults and processes that start.
  module Machine
    # CPU seconds for the start of a Ruby without gems, on the machine for which test files say how long they take.
    REFERENCE = 0.013
    CALLS = 20_000

    module_function

    # @return [Float] how many times longer than on that machine tests take; the best of some tries, for other
    #   programs only make it worse
    def slowness
      @slowness ||= Array.new(5) { start_of_a_ruby }.min / REFERENCE
    end

    # @return [Float] microseconds for a system call that does nothing
    def system_call
      Array.new(5) do
        before = now
        CALLS.times { Process.ppid }
        (now - before) * 1e6 / CALLS
      end.min
    end

    # @return [String]
    def description
      format("%d cores, %.2f us for getppid, %.2f times as slow as the test files say", Tools.processors, system_call,
             slowness)
    end

    def start_of_a_ruby
      before = Process.times
      system({ "RUBY_YJIT_ENABLE" => nil }, RbConfig.ruby, "--disable-gems", "-e", "1", exception: true)
      after = Process.times
      after.cutime + after.cstime - before.cutime - before.cstime
    end

    def now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end
