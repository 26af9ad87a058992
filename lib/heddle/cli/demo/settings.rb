# frozen_string_literal: true

require_relative "runner"
require_relative "report"

module Heddle
  module CLI
    # Measures on this machine what Heddle is for: many unchanged Net::HTTP requests to a slow server, made one after
    # another, with a thread each, and with a fiber each. `heddle demo` runs it. Start reading at demo/runner.rb, then
    # demo/client.rb.
    #
    # @private
    class Demo
      # The settings of the demo.
      # requests:: the number of requests in each measurement
      # delays:: a list of the server's delays in milliseconds
      # processes:: how many client processes share the requests in one more measurement, 1 for none
      # url:: a server of the user's in place of the demo's own, or nil; the delays do not apply then
      Settings = Data.define(:requests, :delays, :processes, :url) do
        def initialize(requests: 1000, delays: [0, 10, 50, 100, 500], processes: 1, url: nil) = super

        # @return [Array<Integer, nil>] the delay of each column of the table
        def columns = url ? [nil] : delays
      end
    end
  end
end
