# frozen_string_literal: true

# bin/test: takes 85 s, 0.5 of a core

require_relative "../test_helper"
require "json"
require "support/clients"
require "support/postgres_outages"

# Solid Queue while its database fails: no job is lost, and its processes go on by themselves.
contract "SolidQueueOutages" do
  extend TestSupport::Clients
  include TestSupport::PostgresOutages

  client "pg"

  heddle_only "the jobs are tasks"

  application = File.expand_path("../support/solid_queue/application.rb", __dir__)

  # How many jobs run at the same time. With TEST_POOL=threads they run in threads.
  at_once = 10

  def setup
    super
    missing = TestSupport::Clients.load("solid_queue", "solid_queue/version")
    skip(missing) if missing
    start_server
    with_database { |admin| admin.exec("CREATE DATABASE #{database}") }
    program("Report.make_tables")
  end

  def teardown
    @supervisor&.then { |pid| Process.kill(:KILL, -pid) && Process.wait(pid) }
    stop_server
    super
  end

  def database = "#{name}_#{backend}"

  # A worker whose sign of life comes later than TEST_ALIVE counts as dead. What it claims after that stays claimed for
  # ever, with threads, too (guides/jobs.md).
  def environment
    { "DATABASE_URL" => "postgresql://heddle@127.0.0.1:#{server.port}/#{database}", "TEST_FOLDER" => tempdir,
      "HEDDLE_BACKEND" => backend, "TEST_ALIVE" => "10" }
  end

  define_method(:program) do |code|
    assert_script(code, gems: true, heddle: false, options: ["-W0", "-r#{application}"], env: environment)
  end

  define_method(:start_supervisor) do
    code = "SolidQueue::Supervisor.start(workers: [{ queues: '*', #{ENV.fetch("TEST_POOL", "fibers")}: #{at_once}, " \
           "polling_interval: 0.1 }], " \
           "dispatchers: [{ polling_interval: 0.1 }], skip_recurring: true)"
    @log = File.join(tempdir, "log")
    @supervisor = Process.spawn(environment, *ruby_command, "-W0", "-r#{application}", "-e", code,
                                pgroup: true, in: File::NULL, out: @log, err: %i[child out])
  end

  def query(text) = with_database(database) { |client| client.exec(text).values }

  # @return [Array<Integer>] the jobs that have said this, each as often as it has
  def reports(word)
    query("SELECT facts FROM reports WHERE word = '#{word}'").map { |facts,| JSON.parse(facts).last }.sort
  end

  def wait_for(what, &)
    wait_until(what, &)
  rescue Minitest::Assertion => e
    raise e.class, [e.message, *state].join("\n"), e.backtrace
  end

  # Where the jobs are, which processes there are, and what they have said.
  def state
    places = %w[ready scheduled claimed failed].map { |name| "SELECT '#{name}', * FROM solid_queue_#{name}_executions" }
    processes = "SELECT id, kind, pid, supervisor_id, last_heartbeat_at, now() FROM solid_queue_processes"
    [*places, processes].flat_map { |text| query(text).map(&:inspect) } +
      File.readlines(@log).last(100)
  end

  # Half of the jobs are due, the others later.
  def push(number)
    program(<<~RUBY)
      now, later = Array.new(#{number}) { |number| SlowJob.new(0.3, number) }.each_slice(#{number / 2}).to_a
      ActiveJob.perform_all_later(now, later.each { |job| job.scheduled_at = 1.hour.from_now })
    RUBY
  end

  # 40 jobs are due before it, and 40 afterwards. Running jobs may fail, and can be retried. The jobs of a worker that
  # has ended wait until the worker is known to be dead. No job that was finished runs again.
  TestSupport::PostgresOutages::OUTAGES.each do |name, outage|
    define_method("test_#{name}") do
      push(80)
      start_supervisor
      wait_for("the first jobs") { finished.any? }
      before = finished
      send(outage)
      query("UPDATE solid_queue_scheduled_executions SET scheduled_at = now()")
      wait_for("an outcome of each job") { left.zero? }
      program("SolidQueue::FailedExecution.retry_all(SolidQueue::Job.where(finished_at: nil))")
      wait_for("the end of those that have failed") { finished.size == 80 }

      assert_equal([*0...80], reports("done").uniq)
      assert_empty(before & twice)
    end
    once(:"test_#{name}") unless outage == :restart
  end

  # @return [Integer] how many jobs have neither ended nor failed
  def left
    Integer(query(<<~SQL).dig(0, 0))
      SELECT count(*) FROM solid_queue_jobs jobs WHERE finished_at IS NULL
      AND NOT EXISTS (SELECT FROM solid_queue_failed_executions failed WHERE failed.job_id = jobs.id)
    SQL
  end

  # @return [Array<Integer>] the jobs that have ended, as the database knows
  def finished
    query("SELECT arguments FROM solid_queue_jobs WHERE finished_at IS NOT NULL")
      .map { |text,| JSON.parse(text).fetch("arguments").last }
  end

  def twice = reports("done").tally.select { |_, times| times > 1 }.keys
end
