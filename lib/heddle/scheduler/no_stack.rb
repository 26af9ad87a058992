# frozen_string_literal: true

module Heddle
  class Scheduler
    # Ruby has no stack for one more fiber: what it says of that names neither the limit nor what can be done.
    module NoStack
      # Of the kernel; two for each stack.
      MAPPINGS_FILE = "/proc/sys/vm/max_map_count"
      # So much of the limit is used up when it is the likely reason.
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
        mappings = "each takes two memory mappings, of which the process may have #{limit || "vm.max_map_count"}"
        raise_it = "raise that limit with `sysctl -w vm.max_map_count=#{(limit || 65_530) * 4}`"
        fewer = "start fewer at a time, as Heddle.each does with limit:"
        return "#{mappings} (vm.max_map_count). Either #{raise_it}, or #{fewer}" if limit && waiting * 2 > limit * LIKELY

        "the memory or the address space is used up (a container's limit, `ulimit -v`), or #{mappings} " \
          "(vm.max_map_count). Either raise the limit, or #{fewer}"
      end

      # Not in the way of a fiber: there is no stack for what that would need.
      def mappings_limit
        Fiber.blocking { Integer(File.read(MAPPINGS_FILE)) }
      rescue SystemCallError, ArgumentError
        nil
      end
    end
    private_constant :NoStack
  end
end
