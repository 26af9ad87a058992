# frozen_string_literal: true

module Bench
  # A thousand requests through a pool of fibers (Heddle::FiberPool) or threads, to the demo's server, which answers
  # each after 10 ms. They are unchanged Net::HTTP, with a connection each. The pool is made and ended in each turn.
  module FiberPools
    LIB = File.expand_path("../lib", ROOT)
    DELAY_MS = 10
    REQUESTS = 1000

    # What many programs have.
    class ThreadPool
      def initialize(size)
        @jobs = Thread::Queue.new
        @threads = Array.new(size) do
          Thread.new do
            while (job = @jobs.pop)
              job.call
            end
          end
        end
      end

      def spawn(&job) = @jobs << job

      def finish
        @jobs.close
        @threads.each(&:join)
      end
    end

    class << self
      # The server in a process of its own, which ends with this one.
      def start(**)
        $LOAD_PATH.unshift(LIB) unless $LOAD_PATH.include?(LIB)
        require "heddle/cli/demo/child"
        require "heddle/cli/demo/server"
        server = Heddle::CLI::Demo::Child.new do |child, link|
          server = Heddle::CLI::Demo::Server.new(lifeline: link)
          child.tell(port: server.port)
          server.serve
        end
        port = server.hear[:port]
        parent = Process.pid
        at_exit { server.close if Process.pid == parent }
        [{ "BENCH_DEMO_PORT" => port.to_s }, {}]
      end

      # @return [Integer] how many answers were right
      def get_all(peer, size, requests)
        target = Heddle::CLI::Demo::Target.own(ENV.fetch("BENCH_DEMO_PORT"))
        right = 0
        peer.run do
          pool = peer.is_a?(ThreadAdapter) ? ThreadPool.new(size) : Heddle::FiberPool.new(size)
          requests.times do |number|
            pool.spawn { right += 1 unless target.mistake(target.get(DELAY_MS, number), DELAY_MS, number) }
          end
          pool.finish if pool.is_a?(ThreadPool)
        end
        right
      end
    end

    Bench.group("fiber_pools", "1,000 GETs, each answered after 10 ms, through a pool of fibers or of threads",
                peers: %w[heddle threads], rounds: 10, best: true, figures: %i[wall cpu],
                setup: method(:start)) do
      [20, 50, 1000].each do |size|
        Bench.row("fiber_pool_#{size}", "a pool of #{size}", unit: "request", operations: REQUESTS, fixed: true,
                                                             expect: ->(n) { n }) do |peer, n|
          $LOAD_PATH.unshift(LIB) unless $LOAD_PATH.include?(LIB)
          require "heddle/cli/demo/target"
          get_all(peer, size, n)
        end
      end
    end
  end
end
