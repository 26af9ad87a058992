# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../support/registry"
require_relative "../support/child"
require_relative "../support/real_server"

module Bench
  module Jobs
    # One engine in one mode: starts its processes, gives them the jobs, and looks at what they take.
    class Measurement
      FOLDER = __dir__
      # What another process adds to the pool of each for the engine itself.
      SPARE = 4
      # A task needs a connection for the time of its query; a thread has one, unless there are too many for PostgreSQL.
      SHARED_POOL = 10
      POOL_OF_THREADS = 50
      LIMIT = 600
      # How often jobs come in a second.
      STEPS = 50.0
      private_constant :FOLDER, :SPARE, :STEPS, :SHARED_POOL, :POOL_OF_THREADS, :LIMIT

      # @param kind [String] "threads", "tasks", or "unsliced": tasks without time slices
      # @param slow [Integer, nil] one job of this number computes
      # @param pace [Numeric, nil] how many jobs come in a second; nil: all at once
      def initialize(engine, kind, concurrency, processes, jobs, wait, slow: nil, pace: nil)
        @engine = engine
        @kind = kind
        @concurrency = concurrency
        @processes = processes
        @jobs = jobs
        @wait = wait
        @slow = slow
        @pace = pace
      end

      # @return [Array] jobs a second, milliseconds of CPU time of a job, megabytes, connections, and the
      #   milliseconds of an HTTP request beside jobs that compute, or until a job has started
      def run
        prepare
        start
        wait_until { count("ready") >= @processes + (@engine == "solid_queue" ? 1 : 0) }
        before = cpu
        began = now
        enqueue_all
        most = { memory: 0, database: 0, redis: 0 }
        wait_until { sample(most) && count("done") >= @jobs }
        seconds = now - began
        [(@jobs / seconds).round, ((cpu - before) * 1000 / @jobs).round(2), most[:memory] / 1024, most[:database],
         @engine == "sidekiq" ? most[:redis] : "-", *(times("took") if @slow),
         *(times("delay") if @pace)]
      ensure
        stop
      end

      private

      def prepare
        require "pg"
        require "redis-client"
        servers = %w[postgres redis].map { |name| RealServer.start(name, install: false) }
        @postgres, @redis_port = servers.map(&:port)
        @database = PG.connect(host: "127.0.0.1", port: @postgres, user: "heddle", dbname: "postgres")
        @redis = RedisClient.new(host: "127.0.0.1", port: @redis_port)
        @redis.call("FLUSHALL")
        @database.exec("SET client_min_messages = warning; DROP TABLE IF EXISTS done, ready; " \
                       "CREATE TABLE done (id serial, took real, delay real); " \
                       "CREATE TABLE ready (id serial)")
        @children = [start_http]
      end

      def start_http
        reader, writer = IO.pipe
        pid = Process.spawn(*Child::TIED, RbConfig.ruby, "-I#{ROOT}/../lib", File.join(FOLDER, "http_server.rb"),
                            @wait.to_s, out: writer, pgroup: true)
        writer.close
        @http = Integer(reader.gets)
        reader.close
        pid
      end

      # The supervisor of Solid Queue starts its own.
      def start
        count = @engine == "sidekiq" ? @processes : 1
        command = [*Child::TIED, RbConfig.ruby, *("--yjit" if defined?(RubyVM::YJIT)), "-W0", "-I#{ROOT}/../lib",
                   File.join(FOLDER, "#{@engine}.rb")]
        count.times { @children << Process.spawn(environment, *command, out: File::NULL, pgroup: true) }
      end

      def environment
        pool = [@concurrency, @kind == "threads" ? POOL_OF_THREADS : SHARED_POOL].min
        database = "postgresql://heddle@127.0.0.1:#{@postgres}/postgres"
        { "DATABASE_URL" => "#{database}?pool=#{pool + SPARE}&checkout_timeout=60",
          "REDIS_URL" => "redis://127.0.0.1:#{@redis_port}/0", "BENCH_KIND" => @kind,
          "BENCH_CONCURRENCY" => @concurrency.to_s, "BENCH_PROCESSES" => @processes.to_s,
          "BENCH_URL" => "http://127.0.0.1:#{@http}/", "BENCH_SLOW" => @slow&.to_s, "RAILS_ENV" => "production",
          "HEDDLE_TIME_SLICE" => ("0" if @kind == "unsliced") }
      end

      def enqueue_all
        @redis.call("SADD", "queues", "default")
        began = now
        @jobs.times.each_slice(@pace ? (@pace / STEPS).ceil : 1000) do |numbers|
          enqueue(numbers)
          sleep([began + numbers.last.fdiv(@pace) - now, 0].max) if @pace
        end
      end

      def enqueue(numbers)
        return @database.exec("NOTIFY enqueue, '#{numbers.first} #{numbers.size}'") if @engine == "solid_queue"

        jobs = numbers.map do |number|
          JSON.generate(class: "BenchJob", args: [number, Process.clock_gettime(Process::CLOCK_REALTIME)],
                        jid: number.to_s, queue: "default", retry: false, created_at: 0)
        end
        @redis.call("LPUSH", "queue:default", *jobs)
      end

      def count(table) = @database.exec("SELECT count(*) FROM #{table}").getvalue(0, 0).to_i

      def times(column)
        points = "percentile_cont(array[0.5, 0.99, 1.0]) WITHIN GROUP (ORDER BY #{column})"
        @database.exec("SELECT unnest(#{points}) FROM done").map { |row| (row["unnest"].to_f * 1000).round }
      end

      def sample(most)
        now_used = { memory:, database: database_connections, redis: redis_connections }
        most.merge!(now_used) { |_, one, other| [one, other].max }
      end

      # Without the process that looks.
      def database_connections
        clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        @database.exec(clients).getvalue(0, 0).to_i - 1
      end

      def redis_connections = @redis.call("INFO", "clients")[/connected_clients:(\d+)/, 1].to_i - 1

      # All processes of the engine, in kilobytes; what they share counts once.
      def memory = workers.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+)/, 1].to_i }

      # @return [Float] seconds
      def cpu
        ticks = workers.flat_map { |pid| File.read("/proc/#{pid}/stat")[/.*\) (.*)/m, 1].split.values_at(11, 12) }
        ticks.sum(&:to_i) / 100.0
      end

      # Each is the leader of a group.
      def workers
        groups = @children.drop(1)
        Dir.children("/proc").grep(/\A\d+\z/).select { |pid| groups.include?(group_of(pid)) }
      end

      def group_of(pid)
        Process.getpgid(Integer(pid))
      rescue Errno::ESRCH
        nil
      end

      def wait_until
        ends = now + LIMIT
        until yield
          raise Missing, "#{@engine} has not done its jobs in #{LIMIT} s" if now > ends
          raise Missing, "#{@engine} has ended" if @children.any? { |pid| Process.wait(pid, Process::WNOHANG) }

          sleep(0.02)
        end
      end

      def stop
        @children&.each do |pid|
          Process.kill(:KILL, -pid)
          Process.wait(pid)
        rescue Errno::ESRCH, Errno::ECHILD
          nil
        end
        [@database, @redis].each { |client| client&.close }
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
