# frozen_string_literal: true

# What time limits cost a memcached client: memcache-client's table of 2009, rebuilt with dalli and a real memcached,
# through Heddle, on a plain thread, and with async. Start it: bin/ruby bench/memcached.rb --help
#
# It starts a memcached of its own (Debian's, installed if it is missing) and ends it. In each round every variant has
# a process of its own. They do their work in many short turns, in random order, so that a slow moment
# hits all of them.

require_relative "support/registry"
require_relative "support/runner"
require_relative "support/environment"
require_relative "support/statistics"
require_relative "support/peer_gems"
require_relative "../test/support/servers/memcached"
require "json"
require "optparse"

begin
  require "terminal-table"
  require_relative "memcached/variants"
  require_relative "memcached/report"
rescue LoadError => e
  abort("#{e.message}: bin/setup installs the gems of the Gemfile, bin/ruby finds them")
end

module Bench
  # Measures all variants on all peers and prints the tables.
  class MemcachedBench
    CHILD = File.join(ROOT, "memcached", "child.rb")
    PAIR = File.join(ROOT, "memcached", "pair.rb")
    # Seconds after which a child is taken to hang.
    ANSWER_LIMIT = 120

    def initialize(argv)
      @n = 2500
      @rounds = 5
      @turns = 50
      @peers = %w[heddle threads async]
      @variants = Memcached::VARIANTS.values
      @install = true
      @yjit = Runner::YJIT
      parser.parse!(argv)
      abort("what is #{argv.first}? See --help.") unless argv.empty?
    rescue OptionParser::ParseError => e
      abort("#{e.message}. See --help.")
    end

    def run
      load_peers
      start_server
      @samples = @peers.product(@variants).to_h { |key| [key, []] }
      ratios = []
      @rounds.times do
        round
        ratios.concat(pair)
      end
      report = Memcached::Report.new(@samples, facts, @missing, ratios)
      puts @json ? report.to_json : report.to_s(:unicode)
      File.write(@output, report.to_s(:markdown)) if @output
    rescue Interrupt
      abort("stopped")
    end

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/memcached.rb [options]"
        on.on("--n N", Integer, "iterations of 12 operations (default #{@n})") { |n| @n = n.clamp(1..) }
        on.on("--rounds N", Integer, "rounds (default #{@rounds})") { |n| @rounds = n.clamp(1..) }
        on.on("--turns N", Integer, "parts of a round (default #{@turns})") { |n| @turns = n.clamp(1..) }
        on.on("--peers A,B", Array, "of heddle, heddle-epoll, threads, async (default #{@peers.join(",")})") do |names|
          @peers = names
        end
        on.on("--variants A,B", Array, "only these: #{Memcached::VARIANTS.keys.join(", ")}") do |names|
          @variants = names.map { |name| Memcached::VARIANTS[name] || abort("no variant #{name}") }
        end
        on.on("--[no-]yjit", "with YJIT (default: where this Ruby has it)") { |yjit| @yjit = yjit }
        on.on("--[no-]install", "install what is missing (default yes)") { |install| @install = install }
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
      end
    end

    def load_peers
      Dir[File.join(ROOT, "peers", "{heddle,threads,async}.rb")].each { |file| require file }
      @gems = PeerGems.new(install: @install)
      @missing = {}
      @peers = @peers.filter_map do |name|
        peer = Bench.peers[name] || abort("no peer #{name}")
        reason = @gems.missing(peer) || peer.prepare&.call
        reason ? (@missing[name] = reason) && nil : peer
      end
    end

    def start_server
      install_memcached if @install && TestSupport::Servers::Memcached.missing
      @server = TestSupport::Servers::Memcached.start
    rescue TestSupport::Servers::Missing => e
      abort(e.message)
    end

    def install_memcached
      require_relative "../tools/console"
      require_relative "../tools/apt"
      Tools::Apt.new(Tools::Console.new).install([TestSupport::Servers::Memcached::PACKAGE])
    rescue Tools::Problem => e
      abort(e.report.join("\n"))
    end

    # All variants, each in a process of its own, in turns.
    def round
      children = {}
      @samples.each_key { |key| children[key] = start(*key) }
      @samples.each_value { |rounds| rounds << [] }
      parts.each_with_index do |iterations, turn|
        shuffled(children.keys).each do |key|
          answer = ask(*key, children.fetch(key), iterations)
          @samples.fetch(key).last << answer if turn.positive? # the first one warms up
        end
      end
    ensure
      children&.each_value { |child| stop(child) }
    end

    # Ctrl-C does not reach it.
    def stop(child)
      Process.kill(:KILL, child.pid)
    rescue Errno::ESRCH
      # It has ended by itself.
    ensure
      child.close
    end

    # No variant gains from its place; those of a peer stay together, for they are compared.
    def shuffled(keys)
      keys.group_by(&:first).values.shuffle.flat_map(&:shuffle)
    end

    # Iterations of the warm-up, then of each turn.
    def parts
      each, rest = @n.divmod(@turns)
      turns = Array.new(@turns) { |turn| each + (turn < rest ? 1 : 0) }
      [(@n / 10).clamp(1..), *turns.select(&:positive?)]
    end

    # Heddle with a limit beside Heddle without one, in one process. Returns ratios.
    def pair
      peer = @peers.find { |one| one.name.start_with?("heddle") } or return []
      child = popen(peer, PAIR, @server.port, 2 * @n)
      JSON.parse(answer_of(child) || abort("#{PAIR}: no answer"))
    ensure
      stop(child) if child
    end

    def start(peer, variant) = popen(peer, CHILD, variant.name, @server.port)

    def popen(peer, script, *arguments)
      flag = ("--#{"disable-" unless @yjit}yjit" if Runner::YJIT)
      IO.popen([Runner::CLEAN_ENV.merge(@gems.env, peer.env), RbConfig.ruby, *flag, "-W:no-experimental", script,
                peer.name, *arguments.map(&:to_s), { pgroup: true }], "r+")
    end

    def answer_of(child) = child.wait_readable(ANSWER_LIMIT) && child.gets

    def ask(peer, variant, child, iterations)
      child.puts(iterations)
      answer = JSON.parse(answer_of(child) || abort("#{peer.name}, #{variant.name}: no answer"))
      expected = Memcached::Workload.gets(iterations)
      return answer if answer.fetch("right") == expected

      abort("#{peer.name}, #{variant.name}: #{answer["right"]} of #{expected} values were right")
    end

    def facts
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{@yjit ? "with" : "without"} YJIT",
        **Environment.describe([]).except("Ruby", "peers"),
        "memcached" => "#{@server.version}, dalli #{Dalli::VERSION}",
        "peers" => @peers.map { |peer| peer_fact(peer) }.join(", "),
        "workload" => "#{@n} iterations, #{@n * Memcached::Workload::OPERATIONS} operations" }
    end

    # "async 2.46.0 (URing)"
    def peer_fact(peer)
      answer = @samples.find { |(one, _), _| one == peer }.last.last.last
      [peer.name, answer["version"], *("(#{answer["backend"]})" if answer["backend"])].compact.join(" ")
    end
  end
end

Bench::MemcachedBench.new(ARGV).run
