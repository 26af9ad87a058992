# frozen_string_literal: true

require_relative "internal/command_call"

# Programs that a task starts, and that end with it.
module Heddle
  # How a program has ended, and what it has written. Returned by {Heddle.command}.
  #
  # @!attribute [r] status
  #   @return [Process::Status] its exit status, or the signal that has ended it
  # @!attribute [r] out
  #   @return [String] what it has written to its standard output; empty if a block was given
  # @!attribute [r] err
  #   @return [String] what it has written to its standard error
  CommandResult = Data.define(:status, :out, :err) do
    # @return [Boolean] is its exit status 0?
    def success? = status.success? || false
  end

  # A program has written more than Heddle.command was to keep.
  class OutputTooLong < Error; end

  class << self
    # Runs a program, and waits for its end and for the end of its output. Meanwhile other tasks run. The program gets a
    # process group of its own. If the call ends before the program does, by a cancel, a timeout, the failure of another
    # task, an error or a break of the block, the whole group is ended: SIGTERM, then, after the grace period, SIGKILL.
    # The program is always waited for, so no zombie stays.
    #
    # An exit status other than 0 is no error: see {CommandResult#success?}.
    #
    # @example
    #   found = Heddle.command("git", "rev-parse", "HEAD", timeout: 5)
    #   found.success? ? found.out.chomp : raise(found.err)
    #
    # @example Its lines, as they come
    #   Heddle.command("ffmpeg", "-i", file, "out.mp4") { |line| puts line }
    #
    # @param command [Array<String, Hash>] as for Process.spawn: the environment, if any, the program and its arguments.
    #   A single String may go through a shell
    # @param input [String, IO, #each, nil] its standard input: the text, what can be read, or the Strings of an
    #   Enumerable; nil: empty
    # @param timeout [Numeric, nil] seconds for the whole call
    # @param max_output [Integer, nil] the number of bytes that its output, and also its error output, may have
    # @param grace [Numeric] seconds between SIGTERM and SIGKILL
    # @param options [Hash] further options of Process.spawn, such as chdir: or umask:
    # @yieldparam line [String] each line of its standard output, with its end, in place of CommandResult#out
    # @return [CommandResult]
    # @raise [Heddle::TimeoutError] when the time is over
    # @raise [Heddle::OutputTooLong]
    # @raise [SystemCallError] if the program cannot be started
    # @raise [ArgumentError] if an argument is not as it should be
    def command(*command, input: nil, timeout: nil, max_output: nil, grace: 5, **options, &block)
      Check.time("timeout", timeout)
      Check.seconds("grace", grace)
      Check.positive_integer("max_output", max_output, " or nil") unless max_output.nil?
      CommandCall.check(command, input, options)

      CommandCall.new(input, max_output, grace, block).run(command, options, timeout)
    end
  end
end
