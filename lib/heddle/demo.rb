# frozen_string_literal: true

require_relative "demo/json_report"
require_relative "demo/runner"
require_relative "demo/settings"
require_relative "demo/text_report"

module Heddle
  # What Heddle is for, measured on this machine: many unchanged Net::HTTP requests to a slow server, made one after
  # another, with a thread each, and with a fiber each. `heddle demo` runs it. Start reading at demo/runner.rb, then
  # demo/styles.rb.
  module Demo
    # @param settings [Settings]
    # @param progress_out [IO]
    # @return [Result]
    def self.run(settings, progress_out: $stderr)
      Runner.new(settings, progress_out:).run
    end
  end
end
