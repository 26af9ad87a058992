# frozen_string_literal: true

# Web servers side by side, each in one process that serves, or in two (Heddle-2, Puma-2):
# bin/ruby bench/web_servers.rb --help
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
      "compute30" => ["1 ms of computing in each request, 30 connections", Clients.new("/compute", 30)],
      "compute200" => ["1 ms of computing in each request, 200 connections", Clients.new("/compute", 200)],
      "slow" => ["27 connections, beside 3 whose requests compute for 200 ms", Beside.new("/", 27, 3, "/slow")],
      "slow_page" => ["A page of Rails, 27 connections, beside 3 that ask for one whose template takes 200 ms",
                      Beside.new("/page", 27, 3, "/slow", application: Load::RAILS, gems: Pages::GEMS)],
      "page" => ["A page of Rails without a query, 32 connections", Pages.new("/page", 32)],
      "query" => ["A page of Rails with one query (SQLite), 32 connections", Pages.new("/query", 32)],
      "uploads" => ["Small requests on 16 connections, beside 4 that upload 1 MB, which is digested",
                    Uploads.new(16, 4)],
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
        options = Options.new(3, 3, LOADS.keys, KINDS.keys - ["Heddle-unsliced"], nil)
        OptionParser.new do |on|
          on.banner = "usage: bin/ruby bench/web_servers.rb [options]"
          on.on("--seconds N", Integer, "for each load (3)") { |number| options.seconds = number }
          on.on("--rounds N", Integer, "of which the medians count (3)") { |number| options.rounds = number }
          on.on("--loads LIST", Array, LOADS.keys.join(",")) { |names| options.loads = names }
          on.on("--servers LIST", Array, KINDS.keys.join(","), "(default: all but Heddle-unsliced)") do |names|
            options.servers = names
          end
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
        others = options.servers.map { |name| name[/\w+/] }.uniq - ["Heddle"]
        versions = others.map { |name| "#{name} #{gems.version(KINDS[name].gems.first)}" }
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
        missing = [*kind.gems, *load.gems].filter_map { |gem| gems.missing_gem(gem) }.first
        missing || Server.run(kind, load, gems) { |server| load.run(server, options.seconds) }
      rescue StandardError => e
        e.message.lines.last.to_s.strip
      end

      def table(name, results)
        spread = LOADS.fetch(name).last.is_a?(Clients)
        lines = results.map do |server, rounds|
          right = rounds.grep(Result)
          "| #{server} | #{right.empty? ? rounds.first : row(name, right, spread)} |"
        end
        [*head(name, spread), *lines]
      end

      def head(name, spread)
        return ["| server | KB for each | MB in all | |", "|---|---|---|---|"] if name == "idle"

        columns = ["server", "#{name == "events" ? "events" : "requests"}/s", "p50 ms", "p99 ms",
                   *("busiest : least busy" if spread), "CPU µs for each", "MB", ""]
        ["| #{columns.join(" | ").rstrip} |", "|#{"---|" * columns.size}"]
      end

      def row(name, results, spread)
        note = results.filter_map(&:note).first
        rate = median(results, :rate)
        memory = median(results, :memory)
        return format("%.1f | %.0f | %s", rate, memory, note) if name == "idle"

        times = %i[median worst].map { |figure| format("%.1f", median(results, figure) * 1e3) }
        times << format("%.2f", median(results, :spread)) if spread
        cpu = format("%.1f", median(results, :cpu) * 1e6) if results.first.cpu
        [format("%.0f ±%.0f%%", rate, range(results, rate)), *times, cpu, format("%.0f", memory), note].join(" | ")
      end

      def median(results, figure) = results.map { |result| result[figure].to_f }.sort[results.size / 2]

      # Half the range of the rates, in percent.
      def range(results, median)
        least, most = results.map(&:rate).minmax
        (most - least) / 2 / [median, 1].max * 100
      end
    end
  end
end

Bench::Web.call(ARGV)
