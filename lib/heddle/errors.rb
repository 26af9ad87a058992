# frozen_string_literal: true

module Heddle
  # Everything that Heddle raises by itself, where Ruby has no class of its own.
  class Error < StandardError; end

  # Errors that are meant for more than a task or a scope: the whole program.
  FOR_THE_PROGRAM = [SystemExit, SignalException, NoMemoryError].freeze
  private_constant :FOR_THE_PROGRAM

  # Raised from Heddle.run when every fiber waits for another one and nothing can wake them, as Ruby does for threads
  # ("No live threads left. Deadlock?"). The message holds what Heddle.dump prints.
  class Deadlock < Error; end

  # Raised where a task reads from a connection on which another one waits for data already, if Heddle.shared_io is
  # :raise. The message says where that one is, and what helps.
  class SharedIOError < Error; end

  # Raised inside a task that was cancelled. Not a StandardError, so that `rescue => e` does not swallow it; ensure
  # blocks run. Task#value raises it to whoever asks a cancelled task for its value.
  class Cancelled < Exception # rubocop:disable Lint/InheritException
    # @return [Object, nil] why: what was given to Task#cancel; for the tasks of a scope that fails, its first error
    attr_reader :reason

    # @param message [String]
    # @param reason [Object, nil]
    def initialize(message = "the task was cancelled", reason: nil)
      super(message)
      @reason = reason
    end

    # @private When the grace period of a scope is over.
    def self.at_last(grace, reason)
      new("the grace period of #{grace} s is over", reason:).tap { |one| one.instance_variable_set(:@last, true) }
    end

    # @private Is nothing after it but the end of the fiber?
    def last? = @last ? true : false

    # @private It cancels this task, by its number (an object would be dumped with it). Who else gets it, from
    # Task#value, is not cancelled.
    def meant_for(task)
      @meant_for ||= task.__id__ unless frozen?
      self
    end

    # @private Is it the task's own cancel? (One of a plain fiber, or of the program itself, is whose it strikes.)
    def meant_for?(task) = @meant_for.nil? || @meant_for == task.__id__
  end
end
