# frozen_string_literal: true

module Bench
  # The memory of this process.
  module Memory
    class << self
      # @return [Integer] bytes that are in memory, after a collection
      def used
        3.times { GC.start }
        Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]) * 1024
      end

      # @return [Float] the bytes that each of this number takes
      def per(number, before) = [used - before, 1].max.fdiv(number)
    end
  end
end
