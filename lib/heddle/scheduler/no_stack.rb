# frozen_string_literal: true

module Heddle
  class Scheduler
    # Explains that Ruby has no stack for one more fiber: Ruby's own error names neither the limit nor a remedy.
    module NoStack
      # The kernel's limit of mappings; a stack needs two.
      MAPPINGS_FILE = "/proc/sys/vm/max_map_count"
      # If this share of the limit is used, the limit is the likely reason.
      LIKELY = 0.8
      private_constant :MAPPINGS_FILE, :LIKELY

      module_function

      # @param waiting [Integer] how many fibers of the scheduler wait
      # @return [FiberError]
      def error(waiting)
        FiberError.new("there is no stack for another task or fiber while #{waiting} wait: #{reason(waiting)}")
      end

      def reason(waiting)
        limit = mappings_limit
        used_up = "the memory or the address space is used up (a container's limit, `ulimit -v`)"
        fewer = "start fewer at a time, as Heddle.each does with limit:"
        return "#{used_up}. Either raise the limit, or #{fewer}" unless limit

        mappings = "each takes two memory mappings, of which the process may have #{limit} (vm.max_map_count)"
        if waiting * 2 > limit * LIKELY
          "#{mappings}. Either raise that limit with `sysctl -w vm.max_map_count=#{limit * 4}`, or #{fewer}"
        else
          "#{used_up}, or #{mappings}. Either raise the limit, or #{fewer}"
        end
      end

      # Reads the limit without a wait in a fiber, for which no stack is left. Returns nil where the kernel has none.
      def mappings_limit
        Fiber.blocking { Integer(File.read(MAPPINGS_FILE)) }
      rescue SystemCallError, ArgumentError
        nil
      end
    end
    private_constant :NoStack
  end
end
