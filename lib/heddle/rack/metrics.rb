# frozen_string_literal: true

require_relative "../prometheus"

module Heddle
  module Rack
    # A Rack application that answers with the figures of {Heddle.stats} in the text format of Prometheus. The figures
    # belong to the process that answers. guides/deployment.md lists them.
    #
    # `heddle serve --control` offers the figures of all its workers.
    #
    # @example config.ru
    #   require "heddle/rack"
    #
    #   map("/metrics") { run Heddle::Rack::Metrics.new }
    class Metrics
      # @param _env [Hash] of Rack
      # @return [Array] of Rack
      def call(_env)
        text = Prometheus.text(Prometheus.families(Heddle.stats))
        [200, { "content-type" => Prometheus::CONTENT_TYPE, "cache-control" => "no-store" }, [text]]
      end
    end
  end
end
