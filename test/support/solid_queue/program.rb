# frozen_string_literal: true

# Starts Solid Queue in a process of its own, gives it jobs, kills it, and prints what came out, as JSON.
#
#   program.rb COUNT   (see application.rb for the environment)

require_relative "application"
require "fileutils"
require "rbconfig"

COUNT = Integer(ARGV.fetch(0))
# The setting of one database's workers, and the default of the other's.
SLICE = ENV.fetch("DATABASE_URL").start_with?("postgresql") ? { time_slice: 0.004 } : {}
WORKERS = { workers: [{ queues: "*", fibers: COUNT, polling_interval: 0.05, **SLICE }],
            dispatchers: [{ polling_interval: 0.1, batch_size: 100 }] }.freeze

def postgres? = ActiveRecord::Base.connection_db_config.adapter == "postgresql"

# The supervisor, with its worker and its dispatcher.
class Supervisor
  def initialize
    schedule = File.join(ENV.fetch("TEST_FOLDER"), "recurring.yml")
    File.write(schedule, "each_second:\n  class: TickJob\n  schedule: every second\n")
    code = "SolidQueue::Supervisor.start(**#{WORKERS.inspect}, skip_recurring: #{!postgres?}, " \
           "recurring_schedule_file: #{schedule.inspect})"
    @pid = Process.spawn(RbConfig.ruby, *$LOAD_PATH.grep(/#{Regexp.escape(Dir.pwd)}/).map { |path| "-I#{path}" },
                         "-r", File.join(__dir__, "application"), "-e", code, pgroup: true)
  end

  def stop
    Process.kill(:TERM, @pid)
    Process.wait2(@pid).last.success?
  end

  def kill
    Process.kill(:KILL, -@pid)
  rescue Errno::ESRCH
    nil
  end
end

# What the tests ask for.
module Program
  module_function

  def run
    Report.make_tables
    supervisor = Supervisor.new
    outcomes = { jobs:, beside:, killed_worker: }
    outcomes.update(holding:, others:, paused_worker:) if postgres?
    outcomes[:ending] = ending(supervisor)
    puts JSON.generate(outcomes)
  ensure
    supervisor&.kill
  end

  def wait_until(what, seconds = 120)
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (value = yield)
      abort("no #{what}: #{state}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
      sleep(0.05)
    end
    value
  end

  def state
    { unfinished: SolidQueue::Job.where(finished_at: nil).count, failed: failures,
      ready: SolidQueue::ReadyExecution.count, claimed: SolidQueue::ClaimedExecution.count,
      reports: Report.group(:word).count, errors: Report.with("thread error").tally }
  end

  def failures
    SolidQueue::FailedExecution.order(:id).map { |one| [one.job.class_name, one.exception_class, one.message] }
  end

  def settled? = SolidQueue::Job.where(finished_at: nil).count == SolidQueue::FailedExecution.count

  def jobs
    COUNT.times { |number| MeetJob.perform_later(COUNT, number) }
    20.times { |number| TransactionJob.perform_later(number) }
    SlowJob.set(wait: 0.3).perform_later(0, "scheduled")
    FailJob.perform_later("ArgumentError")
    [false, true].each { |fails| SpawnJob.perform_later(fails) }
    wait_until("end of the jobs") { settled? }
    worker = SolidQueue::Process.find_by!(kind: "Worker")
    met = Report.with("met")
    { met: met.map(&:first).sort, current: met.all? { |one, other| one == other }, threads: met.map(&:last).uniq,
      transactions: Report.with("transaction").flatten.sort, scheduled: Report.with("done"),
      spawned: Report.with("spawned"), failures: failures.sort, connections:,
      metadata: worker.metadata.slice("pool_type", "pool_size") }
  end

  # Of the worker, with the one of this process and those of the others.
  def connections
    return unless postgres?

    Report.connection.select_value(<<~SQL)
      SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
    SQL
  end

  # Jobs that wait, beside one that computes.
  def beside
    ComputeJob.perform_later
    wait_until("begin of the computing") { Report.with("computes").any? }
    COUNT.times { |number| SlowJob.perform_later(0.01, number) }
    wait_until("end of the jobs that wait") { Report.with("done").map(&:last).grep(Integer).size >= COUNT }
    computed = Report.with("computed").size
    File.write(ComputeJob::GO, "")
    wait_until("end of the computing") { settled? }
    { computed: [computed, Report.with("computed").size], slice: Report.with("computes").flatten }
  end

  def killed_worker
    SolidQueue::FailedExecution.discard_all_in_batches
    start_gate_jobs
    worker = SolidQueue::Process.find_by!(kind: "Worker")
    Process.kill(:KILL, worker.pid)
    wait_until("failures") { SolidQueue::FailedExecution.count >= 5 } # (one may be a recurring task)
    failed = failures.map { |one| one[1] }.uniq
    retry_gate_jobs
    wait_until("end of the jobs") { settled? }
    { failed:, done: Report.with("done").flatten.sort,
      replaced: SolidQueue::Process.where(kind: "Worker").where.not(pid: worker.pid).one? }
  end

  # They run until #retry_gate_jobs.
  def start_gate_jobs
    Report.delete_all
    FileUtils.rm_f(GateJob::OPEN)
    5.times { |number| GateJob.perform_later(number) }
    wait_until("begin of the jobs") { Report.with("started").size == 5 }
  end

  def retry_gate_jobs
    File.write(GateJob::OPEN, "")
    SolidQueue::FailedExecution.retry_all(SolidQueue::Job.where(finished_at: nil))
  end

  # As many jobs as the pool has connections keep one for longer than 5 seconds each. Half of all jobs are of another
  # locale and time zone.
  def holding
    [*[6] * 8, *[0] * 20].each_with_index do |seconds, number|
      place = number.even? ? [:en, "UTC"] : [:de, "Europe/Berlin"]
      I18n.with_locale(place[0]) { Time.use_zone(place[1]) { HoldJob.perform_later(seconds) } }
    end
    wait_until("end of the jobs") { settled? }
    { failed: failures, held: Report.with("held").tally.to_a.sort }
  end

  # Recurring tasks, concurrency controls, roles and shards.
  def others
    10.times { |number| PlaceJob.perform_later(number) }
    6.times { |number| AloneJob.perform_later(number) }
    wait_until("ticks") { Report.with("tick").size >= 2 }
    wait_until("end of the others") { Report.with("alone").size == 12 && Report.with("placed").size == 10 }
    { ticks: Report.with("tick").uniq, placed: Report.with("placed").tally.to_a.sort, alone: Report.with("alone") }
  end

  # A worker stands still, and is taken for dead. It is replaced when it goes on, and its jobs can be retried.
  def paused_worker
    start_gate_jobs
    worker = last_worker
    Process.kill(:STOP, worker.pid)
    worker.update_columns(last_heartbeat_at: 1.hour.ago)
    SolidQueue::Process.prune
    failed = SolidQueue::FailedExecution.all.map(&:exception_class).uniq
    Process.kill(:CONT, worker.pid)
    wait_until("another worker") { last_worker&.then { |last| last.id > worker.id } }
    retry_gate_jobs
    wait_until("end of the jobs") { SolidQueue::Job.where(finished_at: nil, class_name: "GateJob").none? }
    { failed:, done: Report.with("done").flatten.uniq.sort }
  end

  # (That of a worker that was killed may still be there.)
  def last_worker = SolidQueue::Process.where(kind: "Worker").order(:id).last

  # What does not end in time is ready again: jobs that wait, and one that computes.
  def ending(supervisor)
    Report.delete_all
    File.delete(ComputeJob::GO)
    3.times { |number| SlowJob.perform_later(60, number) }
    ComputeJob.perform_later
    wait_until("begin of the jobs") { Report.with("started").size == 3 && Report.with("computes").any? }
    ready = SolidQueue::ReadyExecution.joins(:job).where(job: { class_name: %w[SlowJob ComputeJob] })
    { success: supervisor.stop, ready: ready.count, claimed: SolidQueue::ClaimedExecution.count,
      processes: SolidQueue::Process.count }
  end
end

Program.run
