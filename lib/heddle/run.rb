# frozen_string_literal: true

module Heddle
  using Internal

  # A Heddle.run on a thread of its own, which Heddle.start has started. Any thread and any task may call its methods.
  class Run
    # @return [String, Symbol, nil] the name that was given to Heddle.start
    attr_reader :name

    # @private
    def initialize(name, options, block = Check.no_new(Run, "Heddle.start"))
      @name = name
      @process = Process.pid
      @asked = false
      @value = @error = nil
      begun = Thread::Queue.new
      @thread = Thread.new { perform(begun, options, block) }
      @thread.name = name&.to_s
      Line.undisturbed { @main, @scope = begun.pop }
      value unless @main # an argument is wrong
    rescue Exception # rubocop:disable Lint/RescueException -- nobody gets the run, so it must not go on
      @main ||= begun.pop&.first
      @main&.cancel
      raise
    end

    # Waits for the end of the run.
    #
    # @return [Object] the value of its block
    # @raise [Exception] the error of the run, as of Heddle.run; Heddle::Cancelled if it was stopped
    # @raise [Heddle::Error] in the run itself, which would wait for ever, and in the child of a fork
    def value
      wait
      TaskFailure.raise_again(@error) if @error

      @value
    end

    # Waits for the end of the run, however it ends.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if it still runs when the time is over
    # @raise [ArgumentError] if the timeout is no number
    # @raise [Heddle::Error] in the run itself, without a timeout, and in the child of a fork
    def wait(timeout = nil)
      Check.time("timeout", timeout)
      @asked = true
      outlast(timeout)
    end

    # Cancels the block of the run and its tasks, and waits for their end: their ensure blocks run. In the run itself it
    # only cancels. Does nothing if the run has ended.
    #
    # @param reason [Object, nil] the reason, which the Heddle::Cancelled contains
    # @return [self]
    # @raise [Heddle::Error] in the child of a fork
    def stop(reason = nil)
      @main.cancel(reason)
      outlast(nil) unless @thread.equal?(Thread.current)
      self
    end

    # Starts a task in the run. See Heddle::Scope#spawn.
    #
    # @param arguments [Array<Object>] the arguments of the block
    # @param name [String, Symbol, nil] see Heddle.spawn
    # @param background [Boolean] see Heddle.spawn
    # @param isolated [Boolean] see Heddle.spawn
    # @yieldparam arguments [Array<Object>]
    # @return [Heddle::Task]
    # @raise [Heddle::Error] when the run has ended, and in the child of a fork
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    def spawn(*arguments, name: nil, background: false, isolated: false, &block)
      Check.refuse("Heddle::Run#spawn needs a block") unless block

      @scope.spawn(*arguments, name:, background:, isolated:, &block)
    end

    # @return [Boolean] has it not ended yet?
    def alive? = @thread.alive?

    # @return [String]
    def inspect
      "#<#{self.class} #{"#{Wording.in_line(name)} " if name}#{alive? ? "running" : "ended"}>"
    end

    private

    # Ruby hands on an error that is meant for the program, such as SystemExit, to the main thread.
    def perform(begun, options, block)
      main = nil
      @value = Heddle.run(**options) do
        begun << [main = Task.current, Scope.current]
        block.call
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is the outcome
      @error = e
      raise if FOR_THE_PROGRAM.any? { |kind| e.is_a?(kind) }

      ErrorReport.print(e, main) unless @asked || main.nil? || main.cancelled?
    ensure
      begun.close
    end

    def outlast(timeout)
      raise Error, "the run belongs to the parent of a fork" unless @process == Process.pid

      itself = timeout.nil? && @thread.equal?(Thread.current)
      raise Error, "a run cannot wait for its own end: #{inspect}" if itself

      self if @thread.join(timeout)
    end
  end
end
