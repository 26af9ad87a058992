# frozen_string_literal: true

module Heddle
  # The parent of all errors that Heddle raises by itself, where Ruby has no class of its own.
  class Error < StandardError; end

  # Errors that are not meant for a task or a scope alone, but for the whole program.
  FOR_THE_PROGRAM = [SystemExit, SignalException, NoMemoryError].freeze
  private_constant :FOR_THE_PROGRAM

  # Raised from Heddle.run when every fiber waits for another one and nothing can wake them, as Ruby does for threads
  # ("No live threads left. Deadlock?"). The message contains the output of Heddle.dump.
  class Deadlock < Error; end

  # Raised where a task reads from a connection on which another task already waits for data, if Heddle.shared_io is
  # :raise. The message names the place of the other task, and what helps.
  class SharedIOError < Error; end

  # Raised inside a task that was cancelled. It is not a StandardError, so that `rescue => e` does not swallow it;
  # ensure blocks run. Task#value raises it to a caller that asks a cancelled task for its value.
  class Cancelled < Exception # rubocop:disable Lint/InheritException
    # @return [Object, nil] the reason that was given to Task#cancel; for the tasks of a scope that fails, its first
    #   error
    attr_reader :reason

    # @param message [String]
    # @param reason [Object, nil]
    def initialize(message = "the task was cancelled", reason: nil)
      super(message)
      @reason = reason
    end

    # @private Returns the cancel at the end of a scope's grace period.
    def self.at_last(grace, reason)
      new("the grace period of #{grace} s is over", reason:).tap { |one| one.instance_variable_set(:@last, true) }
    end

    # @private Returns the cancel of a plain fiber at the end of its scheduler. It ends nothing but this fiber.
    def self.of_the_end
      new("the scheduler is ending").tap { |one| one.instance_variable_set(:@of_the_end, true) }
    end

    # @private Does only the end of the fiber follow it?
    def last? = @last ? true : false

    # @private Marks the cancel as meant for this task, by the number of the task. A reference to the task would be
    #   dumped with the exception. Another caller that receives it from Task#value is not cancelled.
    def meant_for(task)
      @meant_for ||= task.__id__ unless frozen?
      self
    end

    # @private Is it the task's own cancel? A cancel of a plain fiber, or of the program itself, belongs to the fiber in
    #   which it is raised.
    def meant_for?(task) = @meant_for.nil? || @meant_for == task.__id__
  end
end
