# frozen_string_literal: true

module Heddle
  module Rails
    # The errors that nobody takes, such as that of an isolated task, go to Rails.error, as those of Rails' own
    # executors do: error trackers subscribe to that. ActiveSupport reports an error once: that of a request is not
    # repeated.
    #
    # @private
    module Errors
      class << self
        # @return [void]
        def start = ErrorReport.also(method(:report))

        private

        def report(error, task)
          ::ActiveSupport.error_reporter&.report(error, handled: false, source: "heddle", context: { task: task&.name })
        end
      end
    end
  end
end
