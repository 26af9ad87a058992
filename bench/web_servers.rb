# frozen_string_literal: true

# Web servers side by side, each in one process that serves: bin/ruby bench/web_servers.rb --help
#
# It needs wrk. The other servers are installed into tmp/bench/gems/. They take turns; of several rounds the best one
# counts. The client runs on the same machine, so the CPU time of a request says more than the requests a second.

require "optparse"
require_relative "support/environment"
require_relative "web/loads"
require_relative "web/server"

module Bench
  # The command.
  module Web
    LOADS = {
      "hello" => ["Hello world, 64 connections", Requests.new("/", 64)],
      "wait" => ["10 ms of waiting in each request, 200 connections", Requests.new("/wait", 200)],
      "large" => ["A body of 64 KB, 64 connections", Requests.new("/large", 64)],
      "events" => ["Server-sent events to 1,000 clients, 10 a second for each", Events.new(1000)],
      "idle" => [nil, nil] # as many as the limits allow
    }.freeze
    FILES_LEFT = 200

    class << self
      def call(arguments)
        options = { seconds: 3, rounds: 3, loads: LOADS.keys, servers: KINDS.keys }
        parser(options).parse(arguments)
        limit = raise_file_limit
        gems = PeerGems.new(install: true)
        puts(heading(gems))
        options[:loads].each do |name|
          title, load = LOADS.fetch(name)
          title, load = idle(limit) if name == "idle"
          puts("\n#{title}:\n\n", table(name, measure(load, options, gems)))
        end
      end

      private

      def parser(options)
        OptionParser.new do |on|
          on.banner = "usage: bin/ruby bench/web_servers.rb [options]"
          on.on("--seconds N", Integer, "for each load (3)") { |number| options[:seconds] = number }
          on.on("--rounds N", Integer, "of which the best one counts (3)") { |number| options[:rounds] = number }
          on.on("--loads LIST", Array, LOADS.keys.join(",")) { |names| options[:loads] = names }
          on.on("--servers LIST", Array, KINDS.keys.join(",")) { |names| options[:servers] = names }
        end
      end

      def raise_file_limit
        _, hard = Process.getrlimit(:NOFILE)
        Process.setrlimit(:NOFILE, hard, hard)
        hard
      end

      def idle(limit)
        number = [20_000, limit - FILES_LEFT].min
        ["#{number} idle connections in one process", Idle.new(number)]
      end

      def heading(gems)
        versions = KINDS.filter_map { |name, kind| "#{name} #{gems.version(kind.gems.first)}" unless name == "Heddle" }
        "Ruby #{RUBY_VERSION} with YJIT; Heddle #{Environment.heddle}, #{versions.join(", ")}; load of the machine " \
          "#{Environment.load}"
      end

      # @return [Hash{String => Result, String}] by server
      def measure(load, options, gems)
        results = {}
        rounds = load.is_a?(Idle) ? 1 : options[:rounds]
        rounds.times do
          options[:servers].each do |name|
            kind = KINDS.fetch(name)
            missing = kind.gems.filter_map { |gem| gems.missing_gem(gem) }.first
            result = missing || Server.run(kind, gems) { |server| load.run(server, options[:seconds]) }
            results[name] = better(results[name], result)
          rescue StandardError => e
            results[name] ||= e.message.lines.last.to_s.strip
          end
        end
        results
      end

      def better(one, other)
        return other unless one.is_a?(Result)

        other.is_a?(Result) && other.rate > one.rate ? other : one
      end

      def table(name, results)
        lines = results.map { |server, result| "| #{server} | #{result.is_a?(String) ? result : row(name, result)} |" }
        [*head(name), *lines]
      end

      def head(name)
        return ["| server | KB for each | MB in all | |", "|---|---|---|---|"] if name == "idle"

        ["| server | #{name == "events" ? "events" : "requests"}/s | p50 ms | p99 ms | CPU µs for each | MB | |",
         "|---|---|---|---|---|---|---|"]
      end

      def row(name, result)
        return format("%.1f | %.0f | %s", result.rate, result.memory, result.note) if name == "idle"

        format("%.0f | %.1f | %.1f | %.1f | %.0f | %s", result.rate, (result.median || 0) * 1e3,
               (result.worst || 0) * 1e3, result.cpu * 1e6, result.memory, result.note)
      end
    end
  end
end

Bench::Web.call(ARGV)
