# frozen_string_literal: true

require "optparse"

module Bench
  # The command line of bench/run.rb.
  class Options
    attr_reader :rows, :peers, :rounds, :scale, :timeout, :output, :json, :install

    def initialize(argv)
      @rows = Bench.rows.values
      @peers = nil
      @rounds = 5
      @scale = 1.0
      @timeout = 60.0
      @install = true
      parser.parse!(argv)
      abort("what is #{argv.first}? See --help.") unless argv.empty?
      # Ratios are to the first peer.
      @peers ||= Bench.peers.values.select(&:default).sort_by { |peer| ORDER.index(peer.name) || ORDER.size }
    rescue OptionParser::ParseError => e
      abort("#{e.message}. See --help.")
    end

    ORDER = %w[heddle threads async carbon_fiber uringmachine itsi c].freeze
    private_constant :ORDER

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/run.rb [options]\nCompares Heddle with threads and other schedulers."
        on.on("--rows A,B", Array, "only these rows") { |names| @rows = pick(Bench.rows, names) }
        on.on("--peers A,B", Array, "only these peers; ratios are to the first") do |names|
          @peers = pick(Bench.peers, names)
        end
        on.on("--rounds N", Integer, "rounds (default #{@rounds})") { |n| @rounds = n.clamp(1..) }
        on.on("--scale X", Float, "multiplies the size of every row (default 1)") { |x| @scale = x }
        on.on("--timeout SECONDS", Float, "longest run of one row on one peer (default #{@timeout.to_i})") do |seconds|
          @timeout = seconds
        end
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
        on.on("--[no-]install", "install missing peers (default yes)") { |install| @install = install }
        on.on("--list", "names of the rows and peers") { list }
      end
    end

    def pick(known, names)
      names.map { |name| known[name] || abort("no #{name}; there are: #{known.keys.join(", ")}") }
    end

    def list
      puts("rows:")
      Bench.rows.each_value { |row| puts("  #{row.name.ljust(20)}#{row.title}") }
      puts("peers:")
      Bench.peers.each_key { |name| puts("  #{name}") }
      exit
    end
  end
end
