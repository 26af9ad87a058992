# frozen_string_literal: true

require_relative "heddle/version"
require_relative "heddle/internal/clock"
require_relative "heddle/internal/scope_limit"
require_relative "heddle/errors"
require_relative "heddle/internal/wording"
require_relative "heddle/internal/native"
require_relative "heddle/scheduler"
require_relative "heddle/internal"
require_relative "heddle/internal/completion"
require_relative "heddle/scheduler/blocking_pool"
require_relative "heddle/internal/check"
require_relative "heddle/internal/task_failure"
require_relative "heddle/internal/error_report"
require_relative "heddle/spawn_hook"
require_relative "heddle/task"
require_relative "heddle/internal/late_task"
require_relative "heddle/scope"
require_relative "heddle/internal/abandoned_scopes"
require_relative "heddle/map"
require_relative "heddle/race"
require_relative "heddle/streams"
require_relative "heddle/start"
require_relative "heddle/timeout"
require_relative "heddle/shield"
require_relative "heddle/time_slices"
require_relative "heddle/blocking"
require_relative "heddle/every"
require_relative "heddle/retry"
require_relative "heddle/command"
require_relative "heddle/internal/line"
require_relative "heddle/limiter"
require_relative "heddle/rate_limiter"
require_relative "heddle/pool"
require_relative "heddle/fiber_pool"
require_relative "heddle/internal/opening"
require_relative "heddle/internal/pool_thread"
require_relative "heddle/core_ext"
require_relative "heddle/internal/io_name"
require_relative "heddle/idle_set"
require_relative "heddle/dump"
require_relative "heddle/stats"
require_relative "heddle/internal/shared_io"
require_relative "heddle/internal/stalls"

# Makes ordinary, blocking Ruby network code run thousands of operations at once on one thread.
#
# @example A thousand requests at once
#   require "heddle"
#   require "net/http"
#
#   Heddle.run do
#     urls.each { |url| Heddle.spawn { Net::HTTP.get(URI(url)) } }
#   end
module Heddle
  using Internal

  class << self
    # Runs the block with a scheduler on this thread, and waits for all the tasks that are spawned in it. The first task
    # that fails cancels the others and the block, and its error is raised here. The outermost run also waits for fibers
    # that were made with Fiber.schedule.
    #
    # The block runs in the fiber of its caller, and belongs to it as any block does: it owns the locks of its caller,
    # shares its fiber-locals and its Fiber storage, and break, return and throw may leave it (then the tasks are
    # cancelled). An exception that is sent to the thread, by Ctrl-C or Thread#raise, is raised where the block waits.
    #
    # Inside of another Heddle.run it only opens a new scope.
    #
    # @param backend [String, Symbol, nil] "uring", "epoll", "kqueue" or "poll"; nil: HEDDLE_BACKEND, else the best that
    #   this machine offers
    # @param grace [Numeric, nil] seconds that ensure clauses, and the tasks that they start, have when the tasks are
    #   cancelled, before they are cancelled once more; nil: the grace of the run around it, else 5
    # @param time_slice [Numeric, false, nil] seconds, from 0.001, that a task may compute while others are ready. Then
    #   they run first, in the middle of its code. false: a task computes until it waits; nil: HEDDLE_TIME_SLICE, else
    #   the same as false
    # @return [Object] the value of the block
    # @raise [Heddle::Error] if a scheduler of another kind is set on this thread, or if time slices do not work here
    # @raise [ArgumentError] without a block, if the backend is unknown, if the grace is no number or negative, or if
    #   the time slice is no such number; inside of another run, if backend or time_slice differ from those of that run
    def run(backend: nil, grace: nil, time_slice: nil, &)
      Check.refuse("Heddle.run needs a block") unless block_given?

      Check.length_of_time("grace", grace) unless grace.nil?
      TimeSlices.check(time_slice)
      scheduler = Scheduler.of_thread
      return run_nested(scheduler, backend, grace, time_slice, &) if scheduler
      return Scheduler.run(backend:, grace:, time_slice:, &) unless Fiber.scheduler

      raise Error, "this thread has a scheduler of another kind (#{Fiber.scheduler.class}): " \
                   "run Heddle in a thread of its own, or before that scheduler is set"
    end

    # Runs the block in a scope, and waits for the tasks that are spawned in it. The first task that fails cancels the
    # other tasks and the block, and its error is raised here. Starts a run if none exists.
    #
    # @example
    #   Heddle.scope(deadline: 2) do |scope|
    #     user = scope.spawn { fetch_user(id) }
    #     orders = scope.spawn { fetch_orders(id) }
    #     [user.value, orders.value]
    #   end
    #
    # @param deadline [Numeric, nil] seconds until the block and all its tasks are cancelled; nil: no limit. If scopes
    #   with deadlines are nested, the earliest deadline counts.
    # @param grace [Numeric, nil] see Heddle.run
    # @yieldparam scope [Heddle::Scope]
    # @return [Object, nil] the value of the block; nil after scope.cancel
    # @raise [Heddle::TimeoutError] when the time is over
    # @raise [Exception] the error of the first task that failed
    # @raise [ArgumentError] without a block, if the deadline or the grace is no number, or if the grace is negative
    def scope(deadline: nil, grace: nil, &)
      Check.refuse("Heddle.scope needs a block") unless block_given?

      Check.time("deadline", deadline)
      Check.length_of_time("grace", grace)
      raise TimeoutError, TimeoutError.pending(deadline).message unless deadline.nil? || deadline.positive?

      Scope.limited(deadline, grace, &)
    end

    # Starts a task in the current scope. Its block runs at once, until it first waits for something.
    #
    # @param arguments [Array<Object>] the arguments of the block
    # @param name [String, Symbol, #call, nil] for reports; a Proc is called when a report is made
    # @param background [Boolean] the scope does not wait for it, but cancels it when all its other tasks have ended
    # @param isolated [Boolean] its failure does not end the scope: Task#value raises it. If nobody asks for the value
    #   within a second, or until the scope ends, the error is reported (Heddle.on_error)
    # @yieldparam arguments [Array<Object>]
    # @return [Heddle::Task]
    # @raise [Heddle::Error] outside of Heddle.run
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    def spawn(*arguments, name: nil, background: false, isolated: false, &block)
      Check.refuse("Heddle.spawn needs a block") unless block

      scope = Scope.current # does not call its method spawn: each keyword and argument passed on costs an object
      scope.start(Task.new(scope, name, background, isolated), arguments, &block)
    end

    # Prints what every task and fiber of every Heddle scheduler in this process is doing: its name, its state, what it
    # waits for, since when, and its backtrace. Works from any thread and from a signal handler; HEDDLE_DUMP=USR1 in
    # the environment makes that signal print it on stderr.
    #
    # @param io [#write]
    # @return [void]
    # @raise [ArgumentError] if the io has no method write
    def dump(io = $stderr)
      Check.responds("io", io, :write)
      Fiber.blocking { io.write(Dump.text) } # must not park: it may be a signal handler
      nil
    end

    # Returns how much the schedulers of this process (of this Ractor) have to do, and have done so far. The counts of
    # schedulers that have ended stay in the sums; in the child of a fork everything begins at 0. Works from any thread.
    # Nothing is allocated, and no clock is read, unless this is called.
    #
    # @example
    #   Heddle.stats.tasks[:io]        # => how many tasks wait for a socket, a pipe or a file
    #   Heddle.stats.loop_latency.p99  # => seconds
    #
    # @return [Heddle::Stats]
    def stats = Stats.now

    private

    def run_nested(scheduler, backend, grace, time_slice, &)
      TimeSlices.check_nested(scheduler, time_slice)
      unless backend.nil? || [scheduler.backend, ""].include?(backend.to_s)
        Check.refuse("backend: must be #{scheduler.backend}, on which this thread runs already, or nil, not " \
                     "#{Check.shown(backend)}")
      end

      return Scope.open(grace:, &) unless Fiber.blocking?
      return scheduler.run_main(grace:, &) if scheduler.outside?
      return scheduler.unblocked { Scope.open(grace:, &) } if FiberInsides.can_unblock?

      # A task may wait, but a wait in a blocking fiber would stop the thread.
      Scope.open(grace:) { spawn(&).value }
    end
  end

  Dump.on_signal(ENV.fetch("HEDDLE_DUMP")) unless ENV.fetch("HEDDLE_DUMP", "").empty?
end
