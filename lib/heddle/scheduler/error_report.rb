# frozen_string_literal: true

module Heddle
  class Scheduler
    # Says on stderr that a fiber ended with an exception, as Ruby does for threads: no warning, so also where $VERBOSE
    # is nil, and not where Thread.report_on_exception is false.
    module ErrorReport
      module_function

      # @param error [Exception]
      # @return [void]
      def print(error)
        return unless Thread.report_on_exception && Thread.current.report_on_exception

        heading = "#{Fiber.current.inspect} terminated with exception (report_on_exception is true):\n"
        $stderr.write(heading, text(error)) # not joined: their encodings may differ
      end

      # The methods of the exception's class may fail.
      def text(error)
        error.full_message
      rescue StandardError
        place = Exception.instance_method(:backtrace).bind_call(error)&.first
        "#{"#{place}: " if place}#{error.class}\n"
      end
    end
    private_constant :ErrorReport
  end
end
