# frozen_string_literal: true

require_relative "child"
require_relative "client"
require_relative "result"
require_relative "target"

module Heddle
  module CLI
    class Demo
      # Runs the demo: starts the server, measures each column in each style, collects the result. Each measurement has
      # processes of its own, so that the remains of one (stacks, a larger heap) do not count for or against another.
      # This process only starts them and waits, so that it takes no time from either side.
      class Runner
        # The first claim of 2008: 20 requests to a server that takes a second for each.
        SLOW_REQUESTS = 20
        SLOW_DELAY_MS = 1000

        # Requests to the demo's own server that a process makes before it is measured, so that YJIT has compiled them.
        WARM_UP = 50

        # Once the system has refused more threads or fibers, this share of the number that it gave is used, to be safe.
        SAFE_SHARE = 0.9

        BAR_WIDTH = 20

        # @param settings [Settings]
        # @param progress_out [IO] receives the progress: a bar that redraws itself on a terminal, else lines
        def initialize(settings, progress_out: $stderr)
          @settings = settings
          @out = progress_out
          @limits = {}
          @done = 0
          # The measurements of each column: the style, and the number of processes.
          @kinds = { blocking: [:blocking, 1], threads: [:threads, 1], heddle: [:heddle, 1] }
          @kinds[:heddle_processes] = [:heddle, settings.processes] if settings.processes > 1
          @steps = (settings.columns.size * @kinds.size) + (settings.url ? 0 : 1)
        end

        # @return [Result]
        # @raise [Child::Failed] if a process cannot start or ends early
        def run
          @target = @settings.url ? Target.new(@settings.url).look : Target.own(start_server)
          columns = @settings.columns.to_h do |delay_ms|
            [delay_ms, @kinds.transform_values { |style, count| measure(style, count, delay_ms, @settings.requests) }]
          end
          Result.new(settings: @settings, columns:, slow: (slow(columns) unless @settings.url))
        ensure
          Child.all.dup.each(&:close)
          @out.print("\r\e[K") if @out.tty?
        end

        private

        def start_server
          child = Child.new do |child, link|
            server = Server.new(lifeline: link)
            child.tell(port: server.port)
            server.serve
          end
          child.hear[:port]
        end

        # Measures with an equal share in each process. Where the system cannot carry all requests at once, they are
        # made again with the number that it carries.
        def measure(style, count, delay_ms, requests)
          show("#{requests} requests #{delay_ms ? "answered after #{delay_ms} ms" : "to #{@settings.url}"}, #{style}" \
               "#{" in #{count} processes" if count > 1}")
          shares = Array.new(count) { |index| (requests + index) / count }
          while (full = (answers = answers(style, delay_ms, shares)).filter_map { |answer| answer[:full] }.min)
            @limits[style] = (full * SAFE_SHARE).floor
            raise Child::Failed, "the system carries not even two requests at once (#{style})" if @limits[style] < 1
          end
          limit = @limits[style]
          Measurement.of(answers, requests, (limit if limit && shares.max > limit))
        end

        def answers(style, delay_ms, shares)
          children = shares.map { |share| Child.new { |child| work(child, style, delay_ms, share) } }
          children.each(&:hear).each { |child| child.tell(begin: true) }
          children.map(&:hear)
        ensure
          children&.each(&:close)
        end

        # Does the work of the child.
        def work(child, style, delay_ms, share)
          require "heddle" if style == :heddle
          WARM_UP.times { |number| @target.get(0, number) } unless @settings.url
          Process.warmup # like a program that has loaded its files
          child.tell(ready: true)
          child.hear
          child.tell(**Client.new(@target, limit: @limits[style]).measure(style, delay_ms, share))
        end

        def show(text)
          bar = ("#" * (BAR_WIDTH * @done / @steps)).ljust(BAR_WIDTH, ".")
          line = format("[%s] %2d/%d  %s", bar, @done += 1, @steps, text)
          @out.print(@out.tty? ? "\r\e[K#{line}" : "#{line}\n")
          @out.flush
        end

        # Measures requests to a slow server. Blocking would take 20 times the delay, and the further time of each
        # request.
        def slow(columns)
          measurement = measure(:heddle, 1, SLOW_DELAY_MS, SLOW_REQUESTS)
          cost = columns.map { |delay_ms, kinds| (1 / kinds[:blocking].rate) - (delay_ms / 1000.0) }.min
          { measurement:, delay_ms: SLOW_DELAY_MS,
            blocking_seconds: SLOW_REQUESTS * ((SLOW_DELAY_MS / 1000.0) + [cost, 0].max) }
        end
      end
    end
  end
end
