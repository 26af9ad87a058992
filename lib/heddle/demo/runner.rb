# frozen_string_literal: true

require_relative "child"
require_relative "clients"
require_relative "progress"
require_relative "result"
require_relative "settings"
require_relative "target"

module Heddle
  module Demo
    # Runs the demo: starts the server, has each column measured in each style, collects the result. It only starts
    # processes and waits for them, so that it takes no time from either side.
    class Runner
      STYLES = %i[blocking threads heddle].freeze

      # The first claim of 2008: 20 requests to a server that takes a second for each.
      SLOW_REQUESTS = 20
      SLOW_DELAY_MS = 1000

      # @param settings [Settings]
      # @param progress_out [IO] where progress is shown
      def initialize(settings, progress_out: $stderr)
        @settings = settings
        @clients = {}
        @progress = Progress.new(steps, out: progress_out)
      end

      # @return [Result]
      # @raise [Child::Failed] if a process cannot start or ends early
      def run
        with_target do |target|
          @target = target
          columns = @settings.columns.map { |delay_ms| column(delay_ms) }
          Result.new(settings: @settings, columns:, slow: (slow(columns) unless @settings.url))
        end
      ensure
        @clients.each_value(&:close)
        @progress.clear
      end

      private

      def steps
        styles = STYLES.size + (@settings.processes > 1 ? 1 : 0)
        (@settings.columns.size * styles) + (@settings.url ? 0 : 1)
      end

      def with_target
        return yield UrlTarget.new(url: @settings.url).with_expected_body if @settings.url

        server = Child.new("heddle/demo/server", "Heddle::Demo::Server.main", bare: true)
        yield EmbeddedTarget.new(port: Integer(server.line))
      ensure
        server&.close
      end

      def column(delay_ms)
        in_styles = STYLES.to_h { |style| [style, measure(style, delay_ms)] }
        processes = measure(:heddle, delay_ms, count: @settings.processes) if @settings.processes > 1
        Result::Column.new(delay_ms:, processes:, **in_styles)
      end

      def measure(style, delay_ms, requests: @settings.requests, count: 1)
        @progress.step(description(style, delay_ms, requests, count)) do
          clients(style, count).measure(delay_ms:, requests:)
        end
      end

      def clients(style, count)
        @clients[[style, count]] ||= Clients.new(style:, target: @target, count:)
      end

      def description(style, delay_ms, requests, count)
        style = "#{style} in #{count} processes" if count > 1
        where = delay_ms ? "answered after #{delay_ms} ms" : "to #{@settings.url}"
        "#{requests} requests #{where}, #{style}"
      end

      # Blocking would take 20 times the delay, and what a request costs besides.
      def slow(columns)
        measurement = measure(:heddle, SLOW_DELAY_MS, requests: SLOW_REQUESTS)
        cost = columns.map { |column| (1 / column.blocking.rate) - (column.delay_ms / 1000.0) }.min
        Result::Slow.new(requests: SLOW_REQUESTS, delay_ms: SLOW_DELAY_MS, measurement:,
                         blocking_seconds: SLOW_REQUESTS * ((SLOW_DELAY_MS / 1000.0) + [cost, 0].max))
      end
    end
  end
end
