# frozen_string_literal: true

# Web servers side by side, each in one process that serves: bin/ruby bench/web_servers.rb --help
#
# It needs wrk. The other servers are installed into tmp/bench/gems/. They take turns; the figures are the medians of
# the rounds. The client runs on the same machine, so the CPU time of a request says more than the requests a second.

require "etc"
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

    Options = Struct.new(:seconds, :rounds, :loads, :servers, :output)

    class << self
      def call(arguments)
        options = parse(arguments)
        limit = raise_file_limit
        gems = PeerGems.new(install: true)
        load = Environment.load
        tables = options.loads.map { |name| measured(name, options, gems, limit) }
        text = "#{facts(options, gems, load)}\n#{tables.join("\n")}"
        options.output ? File.write(options.output, text) : puts(text)
      end

      private

      def parse(arguments)
        options = Options.new(3, 3, LOADS.keys, KINDS.keys, nil)
        OptionParser.new do |on|
          on.banner = "usage: bin/ruby bench/web_servers.rb [options]"
          on.on("--seconds N", Integer, "for each load (3)") { |number| options.seconds = number }
          on.on("--rounds N", Integer, "of which the medians count (3)") { |number| options.rounds = number }
          on.on("--loads LIST", Array, LOADS.keys.join(",")) { |names| options.loads = names }
          on.on("--servers LIST", Array, KINDS.keys.join(",")) { |names| options.servers = names }
          on.on("--output FILE", "gets the tables in place of the terminal") { |file| options.output = file }
        end.parse(arguments)
        options
      end

      def raise_file_limit
        _, hard = Process.getrlimit(:NOFILE)
        Process.setrlimit(:NOFILE, hard, hard)
        hard
      end

      def facts(options, gems, load)
        versions = (options.servers - ["Heddle"]).map { |name| "#{name} #{gems.version(KINDS[name].gems.first)}" }
        facts = { "Ruby" => "#{RUBY_DESCRIPTION}, with YJIT", "Heddle" => Environment.heddle,
                  "others" => versions.join(", "), "machine" => "#{Etc.nprocessors} x #{Environment.processor}",
                  "load" => "#{load} before, #{Environment.load} after", "made" => Time.now.strftime("%Y-%m-%d") }
        facts.map { |name, fact| "#{"#{name}:".ljust(9)}#{fact}\n" }.join
      end

      def measured(name, options, gems, limit)
        title, load = LOADS.fetch(name)
        title, load = idle(limit) if name == "idle"
        warn("#{title} ...")
        "#{[title, "", *table(name, measure(load, options, gems))].join("\n")}\n"
      end

      def idle(limit)
        number = [20_000, limit - FILES_LEFT].min
        ["#{number} idle connections in one process", Idle.new(number)]
      end

      # @return [Hash{String => Array<Result, String>}] by server: what came of each round
      def measure(load, options, gems)
        results = Hash.new { |hash, name| hash[name] = [] }
        (load.is_a?(Idle) ? 1 : options.rounds).times do
          options.servers.each { |name| results[name] << once(KINDS.fetch(name), load, options, gems) }
        end
        results
      end

      def once(kind, load, options, gems)
        missing = kind.gems.filter_map { |gem| gems.missing_gem(gem) }.first
        missing || Server.run(kind, gems) { |server| load.run(server, options.seconds) }
      rescue StandardError => e
        e.message.lines.last.to_s.strip
      end

      def table(name, results)
        lines = results.map do |server, rounds|
          right = rounds.grep(Result)
          "| #{server} | #{right.empty? ? rounds.first : row(name, right)} |"
        end
        [*head(name), *lines]
      end

      def head(name)
        return ["| server | KB for each | MB in all | |", "|---|---|---|---|"] if name == "idle"

        ["| server | #{name == "events" ? "events" : "requests"}/s | p50 ms | p99 ms | CPU µs for each | MB | |",
         "|---|---|---|---|---|---|---|"]
      end

      def row(name, results)
        note = results.filter_map(&:note).first
        rate = median(results, :rate)
        memory = median(results, :memory)
        return format("%.1f | %.0f | %s", rate, memory, note) if name == "idle"

        format("%.0f ±%.0f%% | %.1f | %.1f | %.1f | %.0f | %s", rate, spread(results, rate),
               median(results, :median) * 1e3, median(results, :worst) * 1e3, median(results, :cpu) * 1e6, memory, note)
      end

      def median(results, figure) = results.map { |result| result[figure].to_f }.sort[results.size / 2]

      # Half the range of the rates, in percent.
      def spread(results, median)
        least, most = results.map(&:rate).minmax
        (most - least) / 2 / [median, 1].max * 100
      end
    end
  end
end

Bench::Web.call(ARGV)
