# frozen_string_literal: true

require_relative "run"
require_relative "internal/detached"

# Work on other threads than the caller's.
module Heddle
  class << self
    # Runs the block as Heddle.run does, on a thread of its own, and does not wait for it. If the run fails, and nobody
    # has asked for its value before, the error goes to Heddle.on_error. At the end of the program Ruby kills the
    # thread: stop the run before, if it has to clean up.
    #
    # In the child of a fork the run does not exist.
    #
    # @example A server beside a program that does not use Heddle
    #   server = Heddle.start(name: "server") { serve(socket) }
    #   at_exit { server.stop }
    #
    # @param name [String, Symbol, nil] the name of the thread, for reports
    # @param backend [String, Symbol, nil] see Heddle.run
    # @param grace [Numeric, nil] see Heddle.run
    # @param time_slice [Numeric, false, nil] see Heddle.run
    # @yield
    # @return [Heddle::Run] has the value, and stops the run
    # @raise [ArgumentError] without a block, if the name is neither a String nor a Symbol, if the backend is unknown,
    #   if the grace is no number or negative, or if the time slice is no such number
    def start(name: nil, backend: nil, grace: nil, time_slice: nil, &block)
      Check.refuse("Heddle.start needs a block") unless block

      unless [NilClass, String, Symbol].any? { |kind| name.is_a?(kind) }
        Check.refuse("name: must be a String or a Symbol, not #{Check.shown(name)}")
      end
      Check.length_of_time("grace", grace)
      TimeSlices.check(time_slice)
      Run.new(name, { backend:, grace:, time_slice: }, block)
    end

    # Starts a task that belongs to the process. It goes on when the request, the scope or the Heddle.run that has
    # started it ends, or is cancelled. It needs no Heddle.run around it.
    #
    # All detached tasks run on a thread of their own, beside the caller. So what they share with the caller needs a
    # lock, as between threads. The task gets the Fiber storage of the caller.
    #
    # If it fails, and nobody asks for its value within a second, the error goes to Heddle.on_error (with heddle/rails
    # also to Rails.error). At the end of the program the tasks have 5 seconds to end. Then they are cancelled, and
    # their ensure blocks run. exit! ends them at once. In the child of a fork the tasks of the parent do not exist.
    # Only the main Ractor has detached tasks, because the threads of another Ractor end with it.
    #
    # @example
    #   Heddle.detach("audit") { AuditLog.write(entry) }
    #
    # @param name [String, Symbol, nil] for reports
    # @yield
    # @return [Heddle::Task]
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    # @raise [Heddle::Error] in a Ractor that is not the main one
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def detach(name = nil, &block)
      Check.refuse("Heddle.detach needs a block") unless block

      Check.task_name(name) if name
      raise Error, "only the main Ractor has detached tasks" unless main_ractor?

      Detached.spawn(name, block)
    end

    # Waits until the tasks of Heddle.detach have ended. When the grace period is over, it cancels the remaining
    # tasks, and waits for their ensure blocks. Heddle does this by itself at the end of the program. Call it
    # before exit!, which runs no at_exit blocks.
    #
    # @param grace [Numeric] seconds
    # @return [void]
    # @raise [ArgumentError] if the grace is no number, or negative
    def drain(grace: Scope::GRACE)
      Check.seconds("grace", grace)
      Detached.drain(grace) if main_ractor?
      nil
    end

    private

    def main_ractor? = Ractor.current.equal?(Ractor.main)
  end
end
