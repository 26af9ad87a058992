# frozen_string_literal: true

require_relative "c_program"

module Bench
  # What a system call costs here, and how it can be made dearer for the peers.
  module DearCalls
    CALLS = 200
    ROUNDS = 20

    class << self
      # @param nanoseconds [Integer]
      # @return [Array<String>] what comes before a command whose system calls take at least this time
      def prefix(nanoseconds)
        program = CProgram.new("dear_calls")
        program.compile&.then { |reason| abort("--dear-calls: #{reason}") }
        [program.path, nanoseconds.to_s]
      end

      # @return [Integer] the nanoseconds of the smallest system call, with Ruby's own few
      def cost = Array.new(ROUNDS) { round }.min

      private

      def round
        before = now
        CALLS.times { Process.ppid }
        (now - before) / CALLS
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
