# frozen_string_literal: true

module Heddle
  class Scheduler
    # Says on stderr that a fiber ended with an exception, as Ruby does for threads.
    module ErrorReport
      module_function

      # @param error [Exception]
      # @return [void]
      def print(error)
        warn "#{Fiber.current.inspect} terminated with exception:\n#{error.full_message}"
      end
    end
    private_constant :ErrorReport
  end
end
