# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "support/solid_queue/solid_queue_case"

# Solid Queue on Heddle, with a database that has no SKIP LOCKED.
contract "SolidQueueSqlite" do
  extend TestSupport::SolidQueueCase

  solid_queue "sqlite3", count: 20

  # The worker hears of it before it claims other jobs.
  def test_an_exception_in_the_thread
    assert_script(<<~RUBY, gems: true, env: { "HEDDLE_BACKEND" => backend }, options: %w[-W0])
      require "rails"
      require "active_record/railtie"
      require "active_job/railtie"
      require "solid_queue"
      require "heddle/solid_queue"
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      Execution = Struct.new(:job_id, :perform_with) { def perform = perform_with.call }
      Thread.report_on_exception = false
      threads = Thread::Queue.new
      pool = SolidQueue::Pool.build(type: :fiber, size: 5)
      pool.post(Execution.new(1, -> { (threads << Thread.current) && sleep }))
      pool.available_capacity == 4 or abort("not taken")
      thread = threads.pop
      thread.raise(IOError, "from outside")
      begin
        thread.join
      rescue IOError
        nil
      end
      begin
        capacity = pool.available_capacity
      rescue Heddle::Error => e
        e.message == "the thread of the jobs has ended" or abort(e.message)
      else
        abort("it has room for \#{capacity}")
      end
      pool.shutdown or abort("shut down before")
      pool.available_capacity == 5 or abort("not given back")
    RUBY
  end
end
