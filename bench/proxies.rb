# frozen_string_literal: true

# Counts what `heddle serve` loses of many requests, by itself and behind HAProxy and nginx: bin/ruby bench/proxies.rb
# --help. A part of it is heddle-server/test/server/proxies_test.rb.

require "optparse"
require "rbconfig"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../test", __dir__), File.expand_path("../heddle-server/test", __dir__))
require "support/counted_requests"
require "support/serve_program"

module Bench
  # The command.
  class Proxies
    ROOT = File.expand_path("..", __dir__)
    include TestSupport

    # @param number [Integer] of requests
    # @param limit [Integer] seconds for each line
    # @param arguments [Array<String>] for the server
    def initialize(number, limit, arguments)
      @number = number
      @limit = limit
      @arguments = arguments
    end

    # @return [Boolean] whether nothing was lost
    def call
      CountedRequests::FRONTS.keys.map { |front| all_of(front) }.all?
    end

    private

    def all_of(front)
      serve do |program|
        CountedRequests.behind(front, program) do |ports|
          CountedRequests.clients(front).map { |client| one(front, client, ports) }.all?
        end
      end
    rescue Servers::Missing => e
      puts("#{front}: #{e.message}")
    end

    def one(front, client, ports)
      started = now
      wrong = CountedRequests.wrong(client, ports, @number, limit: @limit)
      puts("#{front}, #{client}: #{@number} requests, #{wrong || "all answered"}, #{(now - started).round} s")
      wrong.nil?
    end

    def serve
      Dir.mktmpdir do |dir|
        File.write(File.join(dir, "config.ru"), CountedRequests::APP)
        program = ServeProgram.new(RbConfig.ruby, "-I#{ROOT}/heddle-server/lib", "#{ROOT}/exe/heddle", "serve",
                                   *CountedRequests.arguments(dir), *@arguments, chdir: dir, env: { "PWD" => dir })
        yield(program)
      ensure
        program&.close
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

number = 100_000
limit = 600
OptionParser.new do |on|
  on.banner = "usage: bin/ruby bench/proxies.rb [options] [-- options of heddle serve]\n" \
              "Makes requests with h2load and curl, and exits with 1 if one was not answered as it should be."
  on.on("--requests N", Integer, "for each client and proxy (100000)") { |value| number = value }
  on.on("--limit N", Integer, "seconds for each client and proxy (600)") { |value| limit = value }
end.parse!

exit(Bench::Proxies.new(number, limit, ARGV).call)
