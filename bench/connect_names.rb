# frozen_string_literal: true

# The price of connecting by name: TCPSocket.new("localhost", port) against TCPSocket.new("127.0.0.1", port), one after
# the other and at once, in Heddle, in plain Ruby (threads) and in async.
# Start it: bin/ruby bench/connect_names.rb --help
#
# Each implementation has a process of its own; in each round they measure one after the other, by address and by name,
# so that a slow moment of the machine hits all. An absolute time means little on another machine; a ratio does, when
# the two know as much of localhost: see the line "hosts" of the report.

require_relative "support/registry"
require_relative "support/runner"
require_relative "support/peer_gems"
require_relative "support/statistics"
require_relative "support/environment"
require "json"
require "optparse"
require "socket"

module Bench
  # Measures all and prints the table.
  class ConnectNamesBench
    CHILD = File.join(ROOT, "connect_names", "child.rb")
    WAYS = { "sequence" => "one after the other", "at_once" => "at once" }.freeze
    GOAL = 2
    # Seconds for one measurement of a slow implementation; it makes fewer connections then.
    LIMIT = 1.0

    def initialize(argv)
      Bench.load_all
      @peers = %w[heddle threads async]
      @rounds = 15
      @operations = 1000
      @name = "localhost"
      @address = "127.0.0.1"
      @install = true
      parser.parse!(argv)
    end

    def run
      gems = PeerGems.new(install: @install)
      @peers = @peers.to_h { |name| [name, Bench.peers[name] || abort("no implementation #{name}")] }
      @missing = @peers.transform_values { |peer| gems.missing(peer) || peer.prepare&.call }.compact
      @children = @peers.except(*@missing.keys).transform_values { |peer| start(peer, gems) }
      @samples = measure
      puts @json ? to_json : report(:unicode)
      File.write(@output, report(:markdown)) if @output
    ensure
      @children&.each_value(&:close)
    end

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/connect_names.rb [options]"
        on.on("--peers A,B", Array, "these implementations (default #{@peers.join(",")}; all that bench/run.rb " \
                                    "knows)") { |names| @peers = names }
        on.on("--rounds N", Integer, "rounds (default #{@rounds})") { |n| @rounds = n.clamp(1..) }
        on.on("--operations N", Integer, "connections in each (default #{@operations})") do |n|
          @operations = n.clamp(1..)
        end
        on.on("--name NAME", "of this machine (default #{@name})") { |name| @name = name }
        on.on("--address ADDRESS", "of the same (default #{@address})") { |address| @address = address }
        on.on("--[no-]install", "install the gems that are missing (default: yes)") { |install| @install = install }
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
      end
    end

    def start(peer, gems)
      command = [RbConfig.ruby, *("--yjit" if Runner::YJIT), CHILD, peer.file, peer.name, @address]
      IO.popen([Runner::CLEAN_ENV.merge(gems.env, peer.env), *command], "r+")
    end

    def ask(peer, way, host, operations)
      child = @children.fetch(peer)
      child.puts("#{way} #{host} #{operations}")
      JSON.parse(child.gets || abort("a child has ended"))
    end

    # [peer, way, host] => the samples of all rounds.
    def measure
      cells = @children.keys.product(WAYS.keys, [@address, @name])
      counts = cells.to_h { |cell| [cell, affordable(*cell)] }
      samples = cells.to_h { |cell| [cell, []] }
      @rounds.times do
        cells.each { |cell| samples[cell] << ask(*cell, counts[cell]) }
      end
      samples
    end

    # Warms up, and finds out how many connections there is time for.
    def affordable(peer, way, host)
      few = @operations.clamp(..20)
      sample = Array.new(2) { ask(peer, way, host, few) }.last
      (LIMIT * few / sample["wall"]).ceil.clamp(few, @operations)
    end

    # Microseconds per connection, one for each round.
    def times(cell, figure)
      @samples[cell].map { |sample| sample[figure] * 1e6 / sample["operations"] }
    end

    # Median over the rounds of (by name / by address): both ran one after the other.
    def ratio(peer, way, figure)
      pairs = times([peer, way, @name], figure).zip(times([peer, way, @address], figure))
      Statistics.median(pairs.map { |named, addressed| named / addressed })
    end

    def lines
      @children.keys.product(WAYS.keys).map do |peer, way|
        { peer:, way:, operations: @samples[[peer, way, @name]].last["operations"],
          cpu: ratio(peer, way, "cpu"), wall: ratio(peer, way, "wall"),
          address: summary([peer, way, @address]), name: summary([peer, way, @name]) }
      end
    end

    def summary(cell)
      { cpu: Statistics.median(times(cell, "cpu")), wall: Statistics.median(times(cell, "wall")),
        spread: Statistics.spread(times(cell, "cpu")),
        objects: (@samples[cell].last["objects"].to_f / @samples[cell].last["operations"]).round(1) }
    end

    def environment
      said = @samples.to_h { |(peer, *), list| [peer, list.last] }
      peers = said.map { |peer, one| [peer, *one["version"], *one["backend"]].join(" ") }
      Environment.describe([]).merge("peers" => peers.join(", "), "hosts" => hosts)
    end

    # What the system says, and how long it takes to say that there is no IPv6 address, or which.
    def hosts
      found = [nil, :INET, :INET6].to_h do |family|
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        addresses = begin
          Addrinfo.getaddrinfo(@name, nil, family, :STREAM).map(&:ip_address).join(" ")
        rescue SocketError
          "no address"
        end
        milliseconds = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000
        [family, format("%s (%.1f ms)", addresses, milliseconds)]
      end
      "#{@name} is #{found[nil]}; IPv4 alone: #{found[:INET]}; IPv6 alone: #{found[:INET6]}"
    end

    def to_json(*)
      JSON.generate(environment:, missing: @missing, rounds: @rounds, operations: @operations, lines:)
    end

    def report(style)
      [environment.map { |key, value| "#{"#{key}:".ljust(9)} #{value}" }.join("\n"),
       *@missing.map { |peer, reason| "#{peer}: #{reason}" }, table(style),
       "Microseconds for a connection, made and closed: of CPU (user + system, all threads) and of time; the median\n" \
       "of #{@rounds} rounds of up to #{@operations} (fewer where that would take more than #{LIMIT} s), and its " \
       "spread. The\nratios are medians of the ratios of each round.", verdict].join("\n\n") << "\n"
    end

    def verdict
      over = lines.select { |line| line[:peer].start_with?("heddle") && line[:wall] > GOAL }
      return "By name is at most #{GOAL} x by address with Heddle: the goal." if over.empty?

      "Over the goal of #{GOAL}: #{over.map { |line| "#{line[:peer]} #{WAYS[line[:way]]}" }.join(", ")}."
    end

    def table(style)
      require "terminal-table"
      rows = lines.map do |line|
        [line[:peer], WAYS[line[:way]], line[:operations], cell(line[:address]), cell(line[:name]),
         format("%.2f x", line[:cpu]), format("%.2f x", line[:wall])]
      end
      headings = ["", "", "number", "address: CPU, time", "name: CPU, time", "CPU", "time"]
      table = Terminal::Table.new(headings:, rows:)
      table.style = { border: style }
      (2...headings.size).each { |column| table.align_column(column, :right) }
      table.to_s
    end

    def cell(summary)
      format("%.0f ±%.0f %%, %.0f", summary[:cpu], summary[:spread] * 100, summary[:wall])
    end
  end
end

Bench::ConnectNamesBench.new(ARGV).run
