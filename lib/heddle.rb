# frozen_string_literal: true

require_relative "heddle/version"
require_relative "heddle/errors"
require_relative "heddle/native"
require_relative "heddle/scheduler"
require_relative "heddle/internal"
require_relative "heddle/completion"
require_relative "heddle/scheduler/blocking_pool"
require_relative "heddle/task"
require_relative "heddle/scope"
require_relative "heddle/map"
require_relative "heddle/race"
require_relative "heddle/timeout"
require_relative "heddle/every"
require_relative "heddle/limiter"
require_relative "heddle/rate_limiter"
require_relative "heddle/pool"
require_relative "heddle/core_ext"
require_relative "heddle/dump"

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
    # Runs the block as a task under a scheduler on this thread and waits for all the tasks that are spawned in it.
    # Inside a running Heddle it only opens a scope of its own; in a blocking fiber (Fiber.blocking) and in a trap
    # handler that interrupts the loop the block is a task of that scope, and the others run meanwhile. The first
    # failing task cancels the others, and its error is raised here. Fibers made with Fiber.schedule are waited for, too
    # (by the outermost run).
    #
    # @param backend [String, Symbol, nil] "uring" or "epoll"; nil: HEDDLE_BACKEND, else the best there is
    # @return [Object] the value of the block
    # @raise [Heddle::Error] if a scheduler of another kind is set on this thread
    # @raise [ArgumentError] without a block, or if the backend is unknown
    def run(backend: nil, &block)
      raise ArgumentError, "Heddle.run needs a block" unless block

      scheduler = Scheduler.of_thread
      return run_nested(scheduler, backend, &block) if scheduler
      return Scheduler.run(backend:, &block) unless Fiber.scheduler

      raise Error, "this thread has a scheduler of another kind (#{Fiber.scheduler.class}): " \
                   "run Heddle in a thread of its own, or before that scheduler is set"
    end

    # Starts a task in the current scope. Its block runs at once, until it first waits for something.
    #
    # @param arguments [Array<Object>] what the block gets
    # @param name [String, nil] for reports
    # @param background [Boolean] the scope does not wait for it, but cancels it when all its other tasks have ended
    # @yieldparam arguments [Array<Object>]
    # @return [Heddle::Task]
    # @raise [Heddle::Error] outside of Heddle.run
    def spawn(*arguments, name: nil, background: false, &block)
      raise ArgumentError, "Heddle.spawn needs a block" unless block

      Scope.current.start(arguments, name, background ? :background : nil, &block)
    end

    # Prints what every task and fiber of every Heddle scheduler in this process is doing: its name, its state, what it
    # waits for, since when, and its backtrace. Works from any thread and from a signal handler; HEDDLE_DUMP=USR1 in
    # the environment makes that signal print it on stderr.
    #
    # @param io [#write]
    # @return [void]
    def dump(io = $stderr)
      Fiber.blocking { io.write(Dump.text) } # must not park: it may be a signal handler
      nil
    end

    private

    def run_nested(scheduler, backend, &)
      if backend && backend.to_s != scheduler.backend
        raise ArgumentError, "backend: this thread runs on #{scheduler.backend} already"
      end

      return Scope.open(&) unless Fiber.current.blocking?

      # A task may wait where a blocking fiber would stop the thread.
      scheduler.outside? ? scheduler.run_main(&) : Scope.open { spawn(&).value }
    end
  end

  Dump.on_signal(ENV.fetch("HEDDLE_DUMP")) unless ENV.fetch("HEDDLE_DUMP", "").empty?
end
