# frozen_string_literal: true

require_relative "stacks"

module Heddle
  module CLI
    # The limits that `heddle doctor` looks at. Sizes are in bytes, :unlimited where there is no limit.
    module Limits
      MAX_MAP_COUNT = "/proc/sys/vm/max_map_count"
      OWN_MAPS = "/proc/self/maps"

      # A fiber's stack and its guard page.
      MAPS_PER_FIBER = 2

      module_function

      # @return [Hash]
      def to_h
        { open_files: limit(:NOFILE), locked_memory: limit(:MEMLOCK), root: Process.euid.zero?,
          max_map_count: max_map_count, fibers: fibers,
          fiber_stack: Stacks.fiber_size, thread_stack: Stacks.thread_size }
      end

      # @param name [Symbol]
      # @return [Hash] soft and hard limit
      def limit(name)
        soft, hard = Process.getrlimit(name).map { |value| value == Process::RLIM_INFINITY ? :unlimited : value }
        { soft:, hard: }
      end

      # @return [Integer, nil] how many memory areas a process may have
      def max_map_count
        Integer(File.read(MAX_MAP_COUNT), exception: false)
      rescue SystemCallError
        nil
      end

      # @return [Integer, nil] how many fibers can be alive at once, about
      def fibers
        return unless max_map_count

        (max_map_count - File.foreach(OWN_MAPS).count) / MAPS_PER_FIBER
      rescue SystemCallError
        nil
      end
    end
  end
end
