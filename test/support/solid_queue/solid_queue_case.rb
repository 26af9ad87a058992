# frozen_string_literal: true

require "json"
require "support/clients"

module TestSupport
  # Gives jobs to a real Solid Queue, in processes of its own (support/solid_queue/program.rb). In the body of a
  # contract:
  #
  #   extend TestSupport::SolidQueueCase
  #   solid_queue "pg", count: 100, server: Servers::Postgres
  module SolidQueueCase
    include Clients

    PROGRAM = File.join(__dir__, "program.rb")

    # @param count [Integer] how many jobs at once
    def solid_queue(driver, count:, server: nil)
      time_limit(1000) # of the first test, which runs the program
      client(driver, server: server)
      outcomes = {}
      define_method(:outcome) do
        flunk("the program has failed in an earlier test") if outcomes.key?(:begun) && !outcomes.key?(:one)
        outcomes[:begun] = true
        outcomes[:one] ||= JSON.parse(run_program(count))
      end
      define_method(:count) { count }
      include Questions
    end

    # The tests.
    module Questions
      def setup
        super
        heddle_only("jobs are tasks")
        missing = Clients.load("solid_queue", "solid_queue/version")
        skip(missing) if missing
      end

      # Each of them waits until all others have begun.
      def test_so_many_jobs_at_once_on_one_thread
        jobs = outcome.fetch("jobs")

        assert_equal([*0...count], jobs["met"])
        assert_equal(["solid_queue.heddle"], jobs["threads"])
        assert_equal({ "pool_type" => "fiber", "pool_size" => count }, jobs["metadata"])
      end

      def test_what_a_job_has_is_its_own
        jobs = outcome.fetch("jobs")

        assert(jobs["current"], "jobs have each other's Current attributes")
        assert_equal((0...20).select(&:even?), jobs["transactions"])
        assert_equal([["scheduled"]], jobs["scheduled"])
      end

      def test_failures_and_tasks_of_jobs
        jobs = outcome.fetch("jobs")

        assert_equal([[7]], jobs["spawned"])
        assert_equal([["FailJob", "ArgumentError", "attempt 2"], ["SpawnJob", "IOError", "the task failed"]],
                     jobs["failures"])
      end

      # They end before it does, with time slices.
      def test_jobs_beside_one_that_computes
        slice = server ? 0.004 : Float(ENV.fetch("HEDDLE_TIME_SLICE", "0.005"))

        assert_equal({ "computed" => [0, 1], "slice" => [slice] }, outcome.fetch("beside"))
      end

      # SIGKILL: the supervisor lets the jobs fail that were running, so that they can be retried.
      def test_a_kill_loses_no_job
        killed = outcome.fetch("killed_worker")

        assert_equal(["SolidQueue::Processes::ProcessExitError"], killed["failed"])
        assert_equal([*0...5], killed["done"])
        assert(killed["replaced"])
      end

      def test_a_shutdown_releases_what_runs
        assert_equal({ "success" => true, "ready" => 4, "claimed" => 0, "processes" => 0 }, outcome.fetch("ending"))
      end

      private

      def run_program(count)
        place = server ? "postgresql://heddle@127.0.0.1:#{server.port}/#{database}" : "sqlite3:#{tempdir}/jobs.sqlite3"
        outcome = run_command(*ruby_command, "-W0", PROGRAM, count.to_s,
                              env: { "DATABASE_URL" => place, "TEST_FOLDER" => tempdir, "HEDDLE_BACKEND" => backend },
                              timeout: 900)

        assert_predicate(outcome, :success?, outcome.err)
        outcome.out
      end

      # A new one for each backend.
      def database
        "jobs_#{backend}".tap do |name|
          connection = PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: "postgres")
          connection.exec("CREATE DATABASE #{name}")
        ensure
          connection&.close
        end
      end
    end
  end
end
