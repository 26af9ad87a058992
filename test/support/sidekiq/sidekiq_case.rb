# frozen_string_literal: true

require "json"
require "support/clients"
require "support/servers/redis"

module TestSupport
  # Runs Sidekiq in processes of their own (support/sidekiq/application.rb), and gives them jobs. In the body of a
  # contract:
  #
  #   extend TestSupport::SidekiqCase
  module SidekiqCase
    include Clients

    APPLICATION = File.join(__dir__, "application.rb")

    def self.extended(contract)
      contract.client("redis-client", server: Servers::Redis)
      contract.include(Steps)
    end

    # For the tests.
    module Steps
      def setup
        super
        heddle_only("Sidekiq's processors are tasks")
        missing = Clients.load("sidekiq", "sidekiq/version")
        skip(missing) if missing
        @running = {}
        @redis = RedisClient.config(host: "127.0.0.1", port: server.port).new_client
        wait_until("the end of those who were killed before") { blocked_clients.zero? } # they would get a job
        redis("FLUSHALL")
      end

      def teardown
        @running&.keys&.each { |pid| stop(pid, :KILL) }
        @redis&.close
        super
      end

      # With what the processes have said.
      def wait_until(...)
        super
      rescue Minitest::Assertion => e
        state = "#{queued.tally} in the queue, #{blocked_clients} wait for a job"
        logs = @running.each_key.map { |pid| log_of(pid) }
        raise e.class, [e.message, state, counts_of_ends, *logs].join("\n"), e.backtrace
      end

      def redis(*) = @redis.call(*)

      # @return [String] for each job how many processes have ended with it, and which processes ran one alone
      def counts_of_ends
        counts = redis("KEYS", "heddle:recovered:*").map { |key| redis("GET", key) }
        "processes that ended: #{counts.join(", ")}; alone: #{redis("KEYS", "heddle:alone:*").join(", ")}"
      end

      # @return [Integer] the pid of a Sidekiq that has started
      def start_sidekiq(*options, mode: "heddle", wait: true, **env)
        log = File.join(tempdir, "log")
        env = { "REDIS_URL" => "redis://127.0.0.1:#{server.port}/0", "TEST_MODE" => mode, "HEDDLE_BACKEND" => backend,
                "NO_COLOR" => "1", **env.transform_keys(&:to_s) }
        pid = Process.spawn(env, *ruby_command, "-W1", "-e", 'load Gem.bin_path("sidekiq", "sidekiq")', "--",
                            "-r", APPLICATION, *options, in: File::NULL, out: log, err: %i[child out], pgroup: true)
        @running[pid] = log
        wait_until("the start of Sidekiq") { redis("SMEMBERS", "processes").grep(/:#{pid}:/).any? } if wait
        pid
      end

      # @return [String] what it has said
      def log_of(pid) = File.read(@running.fetch(pid))

      # @return [Process::Status]
      def stop(pid, signal = :TERM)
        Process.kill(signal, pid)
        ended(pid)
      end

      # @return [Process::Status]
      def ended(pid)
        wait_until("the end of Sidekiq") { Process.wait2(pid, Process::WNOHANG)&.last }.tap do
          @log = log_of(pid)
          @running.delete(pid)
        end
      end

      # @return [String] its jid
      def push(name, *args, queue: "default", at: nil, **more)
        jid = "#{name}#{@number = (@number || 0) + 1}"
        job = JSON.generate({ class: name, args:, jid:, queue:, retry: true, created_at: 0, enqueued_at: 0, **more })
        at ? redis("ZADD", "schedule", at, job) : redis("LPUSH", "queue:#{queue}", job)
        jid
      end

      # @return [Array<Array>] what jobs have told with this word
      def reports(word)
        redis("LRANGE", "report", 0, -1).map { |text| JSON.parse(text) }.select { |report| report.first == word }
      end

      # @return [Array<Array>]
      def wait_for_reports(word, count)
        wait_until("#{count} times #{word.inspect}") { hurry_retries && reports(word).size >= count }
        reports(word)
      end

      # @return [Integer] how many wait for a job in Redis
      def blocked_clients = redis("INFO", "clients")[/blocked_clients:(\d+)/, 1].to_i

      # Retries are due.
      def hurry_retries = redis("ZRANGE", "retry", 0, -1).each { |job| redis("ZADD", "retry", "XX", 1, job) }

      # @return [Array<String>] the classes of the jobs in a queue
      def queued(queue = "default") = redis("LRANGE", "queue:#{queue}", 0, -1).map { |job| JSON.parse(job)["class"] }
    end
  end
end
