# frozen_string_literal: true

module Bench
  # What a page fault costs here: the first write to a page of memory, beside the second one.
  module PageFaults
    PAGES = 4096
    PAGE = 4096

    class << self
      # @return [Integer] nanoseconds
      def cost
        warned = Warning[:experimental]
        Warning[:experimental] = false # IO::Buffer is experimental
        buffer = IO::Buffer.new(PAGES * PAGE, IO::Buffer::MAPPED)
        first, second = Array.new(2) { touch(buffer) }
        [first - second, 0].max / PAGES
      ensure
        buffer&.free
        Warning[:experimental] = warned
      end

      private

      def touch(buffer)
        before = now
        PAGES.times { |page| buffer.set_value(:U8, page * PAGE, 1) }
        now - before
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
