# frozen_string_literal: true

# Runs 50,000 jobs of an engine in one process, which all wait in the queue when it begins, and prints its memory before
# and after each 10,000: it must stay flat. It starts a server of its own.
#
#   bin/ruby test/soak/jobs.rb sidekiq|sidekiq-reliable|solid_queue [COUNT]

$LOAD_PATH.unshift(File.expand_path("..", __dir__))
require "logger"

module Soak
  # What the engines have in common.
  class Jobs
    PARTS = 5
    DONE = Thread::Queue.new
    # What the memory may grow by after the first part.
    GROWTH = 1.2

    # @return [Jobs] of this engine
    def self.of(name)
      { "sidekiq" => -> { Sidekiq.new }, "sidekiq-reliable" => -> { Sidekiq.new(reliable: true) },
        "solid_queue" => -> { SolidQueue.new } }.fetch(name).call
    end

    # @return [Boolean] did it stay flat?
    def run(count)
      prepare
      in_another_process { push(count) }
      sizes = measured(count) { start }
      stop
      abort("#{left} jobs are left") unless left.zero?
      flat = sizes.last <= sizes[1] * GROWTH
      puts(flat ? "flat" : "it grew from #{sizes[1]} to #{sizes.last} MB")
      flat
    end

    private

    # What the jobs take in memory while they are put into the queue is not that of who runs them.
    def in_another_process(&)
      Process.wait(fork(&))
      abort("the jobs are not in the queue") unless $?.success?
    end

    # @return [Array<Integer>] megabytes, before the first job and after each part
    def measured(count)
      sizes = [memory(0)]
      yield
      1.upto(PARTS) do |part|
        (count / PARTS).times { DONE.pop }
        sizes << memory(count / PARTS * part)
      end
      sizes
    end

    def memory(jobs)
      size = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i / 1024
      puts format("%6d jobs: %d MB", jobs, size)
      $stdout.flush
      size
    end

    # With 500 at once.
    class Sidekiq < Jobs
      def initialize(reliable: false)
        super()
        @reliable = reliable
      end

      private

      def prepare
        require "support/servers/redis"
        ENV["REDIS_URL"] = "redis://127.0.0.1:#{TestSupport::Servers::Redis.start.port}/0"
        require "sidekiq"
        require "sidekiq/api"
        require "heddle/sidekiq"
        ::Sidekiq.default_configuration.logger = Logger.new(nil)
        Object.const_set(:WaitJob, Class.new.include(::Sidekiq::Job))
        # Waits, and asks Redis.
        WaitJob.define_method(:perform) do |number|
          sleep(0.01)
          ::Sidekiq.redis { |redis| redis.call("PING") }
          DONE << number
        end
      end

      def push(count)
        ::Sidekiq::Client.push_bulk("class" => WaitJob, "args" => Array.new(count) { |number| [number] })
      end

      def start
        @engine = ::Sidekiq.configure_embed do |config|
          config.logger = Logger.new(nil)
          config.concurrency = 500
          Heddle::Sidekiq.fetch_reliably(config) if @reliable
        end
        @engine.run
      end

      def stop = @engine.stop

      def left
        ::Sidekiq::Queue.new.size + ::Sidekiq.redis { |redis| redis.call("KEYS", "heddle:working:*").size }
      end
    end

    # With 100 at once, and a pool of 8 connections.
    class SolidQueue < Jobs
      private

      def prepare
        require "support/servers/postgres"
        server = TestSupport::Servers::Postgres.start
        ENV["DATABASE_URL"] = "postgresql://heddle@127.0.0.1:#{server.port}/postgres"
        ENV["TEST_FOLDER"] = server.folder
        require "support/solid_queue/application"
        Report.make_tables
        # Waits, and asks PostgreSQL.
        Object.const_set(:WaitJob, Class.new(ActiveJob::Base))
        WaitJob.define_method(:perform) do |number|
          sleep(0.01)
          Report.connection.select_value("SELECT 1")
          DONE << number
        end
      end

      def push(count)
        (0...count).each_slice(1000) { |numbers| ActiveJob.perform_all_later(numbers.map { |one| WaitJob.new(one) }) }
      end

      def start
        @engine = ::SolidQueue::Worker.new(queues: "*", fibers: 100, polling_interval: 0.1)
        @engine.start
      end

      def stop
        sleep(0.1) until left.zero?
        @engine.stop
      end

      def left = ::SolidQueue::Job.where(finished_at: nil).count
    end
  end
end

exit(Soak::Jobs.of(ARGV.fetch(0)).run(Integer(ARGV.fetch(1, "50000"))))
