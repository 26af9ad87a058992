# frozen_string_literal: true

# The values that tasks have of the task that spawns them, as JSON. It is a process of its own, for two versions of
# ActiveSupport do not fit into one: inheritance_program.rb VERSION BACKEND

require "json"
require "stringio"

version, backend = ARGV
gem("activerecord", version)
require "active_record"
require "active_support/all"
require "heddle/rails"

BACKEND = backend
ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
I18n.available_locales = %i[en de fr]

class Current < ActiveSupport::CurrentAttributes
  attribute :user, :visited
end

# The test of the same name says what each of these does (test/rails/inheritance_test.rb).
module Program
  module_function

  def run
    outcomes = %i[not_loaded a_task_has_a_copy two_tasks tasks_of_tasks the_block not_inherited log_tags role context
                  offloaded offloaded_log_tags asynchronous by_thread].to_h do |name|
      [name, Thread.new { Heddle.run(backend: BACKEND) { send(name) } }.value] # a request
    end
    puts JSON.generate(outcomes)
  end

  # A task that has nothing to do with ActiveRecord does not load it, as its first user would pay for that.
  def not_loaded
    Heddle.spawn { nil }.wait
    $LOADED_FEATURES.any? { |path| path.end_with?("/active_record/base.rb") }
  end

  # In a request, in its task, and in a task of that task; and whether the session of a task ends with it.
  def asynchronous
    session = -> { ActiveRecord::Base.asynchronous_queries_session }
    tracker = ActiveRecord::Base.asynchronous_queries_tracker
    tracker.start_session
    sessions = [session.call, Heddle.spawn { session.call }.value, Heddle.spawn { Heddle.spawn(&session).value }.value]
    [sessions.uniq.size, sessions.map(&:active?), tracker.finalize_session && Heddle.spawn { refused?(&session) }.value]
  end

  def refused?
    yield
    false
  rescue ActiveRecord::ActiveRecordError
    true
  end

  def seen = [Current.user, Time.zone&.name, I18n.locale]

  def become(user, zone, locale)
    Current.user = user
    Time.zone = zone
    I18n.locale = locale
  end

  def a_task_has_a_copy
    become("ada", "Berlin", :de)
    task = Heddle.spawn do
      before = seen
      sleep(0.01) # the spawner changes meanwhile
      after = seen
      become("carl", "Tokyo", :en)
      [before, after, seen]
    end
    become("bob", "Paris", :fr)
    [task.value, seen]
  end

  def two_tasks
    become("ada", "Berlin", :de)
    Heddle.map(%w[eve fred]) do |user|
      become(user, "Tokyo", user == "eve" ? :en : :fr)
      sleep(0.01)
      seen
    end
  end

  def tasks_of_tasks
    become("ada", "Berlin", :de)
    Heddle.spawn { Heddle.spawn { Heddle.run { seen } }.value }.value
  end

  # The block of a run is its caller's, not a copy.
  def the_block
    become("ada", "Berlin", :de)
    Heddle.run { become("bob", "Paris", :fr) }
    seen
  end

  def not_inherited
    Heddle::Rails.inherit_current = false
    become("ada", "Berlin", :de)
    Heddle.spawn { [Current.user, Time.zone&.name] }.value
  ensure
    Heddle::Rails.inherit_current = true
  end

  def log_tags
    lines = StringIO.new
    logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(lines))
    logger.tagged("request 7") do
      Heddle.each(%w[one two]) { |name| logger.tagged(name) { sleep(0.01) && logger.info("done") } }
      logger.info("all done")
    end
    lines.string.lines(chomp: true).sort
  end

  def role
    ActiveRecord::Base.connected_to(role: :reading) do
      task = Heddle.spawn do
        ActiveRecord::Base.connected_to(role: :writing) { sleep(0.01) } # changes only its own
        ActiveRecord::Base.current_role
      end
      [task.value, ActiveRecord::Base.current_role]
    end
  end

  def context
    ActiveSupport::ExecutionContext[:controller] = "posts"
    task = Heddle.spawn do
      ActiveSupport::ExecutionContext.to_h.tap { ActiveSupport::ExecutionContext[:job] = "own" }
    end
    [task.value, ActiveSupport::ExecutionContext.to_h]
  end

  def offloaded
    become("ada", "Berlin", :de)
    inside = Heddle.offload { seen.tap { become("bob", "Paris", :fr) } }
    background = Heddle.spawn(background: true) { seen }.value
    [inside, seen, background, Heddle.spawn { Heddle.offload { seen } }.value]
  end

  def offloaded_log_tags
    lines = StringIO.new
    logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(lines))
    logger.tagged("request 7") { Heddle.offload { logger.tagged("own") { logger.info("done") } } }
    lines.string.lines(chomp: true)
  end

  # Two tasks, one warning.
  def by_thread
    ActiveSupport::IsolatedExecutionState.isolation_level = :thread
    stderr = $stderr
    $stderr = StringIO.new
    2.times { Heddle.spawn { nil } }
    $stderr.string
  ensure
    $stderr = stderr
  end
end

Program.run
