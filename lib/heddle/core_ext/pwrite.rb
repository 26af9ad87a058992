# frozen_string_literal: true

module Heddle
  module CoreExt
    # Ruby 3.3 and 3.4 call the io_pwrite hook, and allocate objects for it, without the GVL: memory corruption under
    # any scheduler. Under Heddle the hook is called from here instead.
    module Pwrite
      # Writes at a position of the file; see IO#pwrite.
      def pwrite(object, offset)
        scheduler = Fiber.current_scheduler
        return super unless scheduler.is_a?(Scheduler)

        string = object.to_s
        written = IO::Buffer.for(string) { |buffer| scheduler.io_pwrite(self, buffer, offset, 0, 0) }
        raise SystemCallError.new(path, -written) if written.negative?

        written
      end
    end
  end
end

IO.prepend(Heddle::CoreExt::Pwrite)
