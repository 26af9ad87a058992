# frozen_string_literal: true

# UringMachine's benchmark/bm_*.rb, with Heddle as one more target:
#
#   bin/ruby bench/others/uringmachine.rb --source FOLDER
#
# FOLDER is a checkout of UringMachine. Its files run unchanged but for two things: their common.rb, which installs gems
# and measures, is not loaded; and the number of iterations in a group is less (--scale 20 makes it what they have).
# PostgreSQL and Redis are started for them. "uringmachine-api" is UringMachine without a scheduler, by its own methods.

require "openssl"
require_relative "command"
require_relative "../rows/servers"

module Bench
  # Rows made of UringMachine's benchmarks.
  module UringMachineSuite
    GROUP = "uringmachine_suite"
    PEERS = %w[heddle-uring heddle-epoll threads async carbon_fiber uringmachine itsi uringmachine-api].freeze
    # Name of the file => the constant with the number of iterations, and what else it needs.
    FILES = { "io_pipe" => [:ITERATIONS], "io_socketpair" => [:ITERATIONS], "io_ssl" => [:ITERATIONS],
              "mutex_io" => [:ITERATIONS], "mutex_cpu" => [:ITERATIONS], "queue" => [:ITEMS],
              "pg_client" => %i[I postgres], "redis_client" => %i[I redis] }.freeze
    PART = 0.05
    NOTE = "A run is #{(PART * 100).to_i} % of its iterations at --scale 1.".freeze

    # In place of the gem localhost, which makes a certificate and keeps it in the user's home.
    module Certificate
      def server_ctx = @server_ctx ||= Servers.tls_context
    end

    # In place of containers.
    module OwnServers
      def create_db_conn(*)
        PG.connect(host: "127.0.0.1", port: ENV.fetch("BENCH_POSTGRES_PORT"), user: "heddle", dbname: "postgres")
      end

      def create_redis_conn(*) = Redis.new(host: "127.0.0.1", port: ENV.fetch("BENCH_REDIS_PORT"))
    end

    # Its own API: no scheduler, no Fiber.schedule.
    class Api
      include Costs

      def run_benchmark(benchmark)
        machine = UringMachine.new(size: 16_384)
        fibers = []
        descriptors = []
        benchmark.do_um(machine, fibers, descriptors)
        machine.await(fibers)
        descriptors.each { |descriptor| machine.close(descriptor) }
      end
    end

    class << self
      def define
        raise Errno::ENOENT, Others.path("benchmark") unless File.exist?(Others.path("benchmark", "bm_io_pipe.rb"))

        api
        Bench.group(GROUP, "UringMachine's own benchmarks", peers: PEERS, note: NOTE, setup: Others.method(:setup)) do
          FILES.each { |name, (iterations, *needs)| row(name, iterations, needs) }
        end
      end

      private

      def api
        Bench.peer("uringmachine-api", gems: %w[uringmachine], ruby: ">= 3.5", default: false,
                                       rows: (FILES.keys - %w[pg_client redis_client]).map { |name| "um_#{name}" }) do
          require "uringmachine"
          Api.new
        end
      end

      def row(name, iterations, needs)
        Bench.row("um_#{name}", "bm_#{name}", unit: "run", operations: 1000, fixed: true, figure: :wall, warm_up: false,
                                              needs:, also: { cpu: ["the same, CPU time", "run"] },
                                              expect: ->(_) { true }) do |peer, n|
          benchmark = load_benchmark(name, iterations, n / 1000.0 * PART)
          peer.measure { run(peer, benchmark) }
          peer.done = 1
          true
        end
      end

      # @return [UMBenchmark]
      def load_benchmark(name, iterations, part)
        $LOADED_FEATURES << Others.path("benchmark", "common.rb")
        TOPLEVEL_BINDING.receiver.define_singleton_method(:require) do |file|
          file == "localhost/authority" ? false : super(file)
        end
        Object.const_set(:UMBenchmark, Class.new)
        %w[pg redis].each { |client| require client if name.start_with?(client) }
        require Others.path("benchmark", "bm_#{name}")
        number = Object.const_get(iterations)
        Object.__send__(:remove_const, iterations)
        Object.const_set(iterations, [(number * part).ceil, 1].max)
        UMBenchmark.prepend(OwnServers, Certificate)
        UMBenchmark.new.tap { |benchmark| prepare(benchmark) if name == "pg_client" }
      end

      # It adds to the table that is there, and prints how long that took.
      def prepare(benchmark)
        benchmark.create_db_conn.tap { |connection| connection.exec("DROP TABLE IF EXISTS foo") }.close
        said = $stdout
        $stdout = File.open(File::NULL, "w")
        benchmark.prepare_db
      ensure
        $stdout = said
      end

      def run(peer, benchmark)
        return peer.run_benchmark(benchmark) if peer.is_a?(Api)

        ios = []
        if peer.is_a?(ThreadAdapter)
          threads = []
          benchmark.do_threads(threads, ios)
          threads.each(&:join)
        else
          peer.run { benchmark.do_scheduler(Fiber.scheduler, ios) }
        end
        ios.each(&:close)
      end
    end

    define if ENV[Others::SOURCE]
  end
end

if $PROGRAM_NAME == __FILE__
  Bench::Others.run("bench/others/uringmachine.rb", Bench::UringMachineSuite::GROUP, ARGV) do
    Bench::UringMachineSuite.define
  end
end
