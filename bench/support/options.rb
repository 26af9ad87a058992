# frozen_string_literal: true

require "optparse"
require_relative "child"

module Bench
  ORDER = %w[heddle-uring heddle-epoll threads async carbon_fiber uringmachine itsi c c-uring].freeze
  private_constant :ORDER

  # The peers that run a group unless the command line says otherwise. The first is the base of the ratios.
  def self.peers_of(group)
    return group.peers.map { |name| peers.fetch(name) } if group.peers

    peers.values.select(&:default).sort_by { |peer| ORDER.index(peer.name) || ORDER.size }
  end

  # The command line of bench/run.rb.
  class Options
    # What a system call takes with page-table isolation, in nanoseconds.
    DEAR_CALL = 1200

    attr_reader :given, :rows, :peers, :rounds, :turns, :scale, :timeout, :seconds, :output, :json, :check,
                :install, :yjit, :keep, :dear_calls

    # @param defaults [Array<String>] options that come before
    def initialize(argv, defaults: [])
      @given = argv.dup
      @rows = rows_of("operations")
      @scale = 1.0
      @timeout = 60.0
      @install = true
      @yjit = Child::YJIT
      rest = parser.parse(defaults + argv)
      abort("what is #{rest.first}? See --help.") unless rest.empty?
    rescue OptionParser::ParseError => e
      abort("#{e.message}. See --help.")
    end

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/run.rb [options]\nCompares Heddle with threads and other schedulers; " \
                    "--list names further groups of rows."
        on.on("--rows A,B", Array, "these rows, groups of rows or patterns (default operations; all: all)") do |names|
          @rows = names.flat_map { |name| pick_rows(name) }.uniq
        end
        on.on("--peers A,B", Array, "these peers; ratios are to the first (default: what the group says)") do |names|
          @peers = names.map { |name| Bench.peers[name] || unknown(name, Bench.peers.keys) }
        end
        on.on("--rounds N", Integer, "rounds (default: what the group says)") { |n| @rounds = n.clamp(1..) }
        on.on("--turns N", Integer, "parts of a round (default: what the group says)") { |n| @turns = n.clamp(1..) }
        on.on("--scale X", Float, "multiplies the size of every row (default 1)") { |x| @scale = x }
        on.on("--timeout SECONDS", Float, "longest turn of one row on one peer (default #{@timeout.to_i})") do |seconds|
          @timeout = seconds
        end
        on.on("--seconds N", Float, "as many rounds as fit in so many seconds") { |seconds| @seconds = seconds }
        on.on("--keep", "each peer does all rows of a group in one process: quicker, less exact") { @keep = true }
        on.on("--dear-calls [NS]", Integer, "make a system call of the peers take so many nanoseconds, by a seccomp",
              "filter with many rules (default #{DEAR_CALL}): as in a container, or on a machine with",
              "page-table isolation") { |ns| @dear_calls = (ns || DEAR_CALL).clamp(1..) }
        on.on("--[no-]yjit", "with YJIT (default: where this Ruby has it)") { |yjit| @yjit = yjit }
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
        on.on("--check", "exit with 1 if a goal is not met or a row fails, and with 3 if this",
              "machine cannot tell, for the rounds of a row differ too much") { @check = true }
        on.on("--[no-]install", "install missing peers and servers (default yes)") { |install| @install = install }
        on.on("--list", "names of the rows and peers") { list }
      end
    end

    def pick_rows(name)
      return Bench.rows.values if name == "all"
      return rows_of(name) if Bench.groups.key?(name)

      found = Bench.rows.values_at(*Bench.rows.keys.select { |row| row == name || File.fnmatch(name, row) })
      found.empty? ? unknown(name, Bench.groups.keys + rows_of("operations").map(&:name)) : found
    end

    def rows_of(group) = Bench.rows.values.select { |row| row.group.name == group }

    def unknown(name, known) = abort("no #{name}; there are: #{known.join(", ")}")

    def list
      Bench.groups.each_value do |group|
        puts("#{group.name}: #{group.title}")
        rows_of(group.name).each { |row| puts("  #{row.name.ljust(34)}#{row.title}") }
      end
      puts("peers: #{Bench.peers.keys.join(", ")}")
      exit
    end
  end
end
