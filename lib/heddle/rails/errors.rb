# frozen_string_literal: true

module Heddle
  module Rails
    # Passes errors that no caller receives, such as the error of an isolated task, to Rails.error, as Rails' own
    # executors do: error trackers subscribe to it. ActiveSupport reports an error once: the error of a request is not
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
