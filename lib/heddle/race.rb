# frozen_string_literal: true

require_relative "internal/contest"

# Several ways to the same end.
module Heddle
  # Raised by Heddle.any when no callable has succeeded. Its cause is the first of the errors.
  class NoneSucceeded < Error
    # @return [Array<Exception>] the error of each callable, in their order
    attr_reader :errors

    # @param errors [Array<Exception>]
    def initialize(errors)
      @errors = errors
      told = errors.map { |error| "#{Wording.of(error, :message)} (#{error.class})" }
      super("none of #{errors.size} succeeded: #{told.join("; ")}")
    end
  end

  class << self
    # Calls all callables at the same time, in a task each. Returns the value of the first callable that ends, or raises
    # its error. The others are cancelled. When race returns, they have ended and their ensure blocks have run; errors
    # that they raise meanwhile are dropped. If one ends before it waits for anything, the next ones are not called at
    # all. Starts a run if none exists.
    #
    # @example
    #   Heddle.race(-> { ask(:here) }, -> { ask(:there) })
    #
    # @param callables [Array<#call>]
    # @return [Object]
    # @raise [ArgumentError] without a callable
    # @raise [Exception] the error of the first callable that ended
    def race(*callables)
      Contest.new(callables).winner { true }.value
    end

    # Calls all callables at the same time, in a task each. Returns the value of the first callable that succeeds. The
    # others are cancelled. When any returns, they have ended and their ensure blocks have run; errors that they raise
    # are dropped. SystemExit, signals and NoMemoryError are meant for the program: the first of them is raised. Starts
    # a run if none exists.
    #
    # @example
    #   Heddle.any(*mirrors.map { |mirror| -> { Net::HTTP.get(mirror) } })
    #
    # @param callables [Array<#call>]
    # @return [Object]
    # @raise [ArgumentError] without a callable
    # @raise [Heddle::NoneSucceeded] when all have failed
    def any(*callables)
      contest = Contest.new(callables)
      task = contest.winner { |one| one.error.nil? }
      return task.value if task

      raise NoneSucceeded.new(contest.errors), cause: contest.errors.first
    end
  end
end
