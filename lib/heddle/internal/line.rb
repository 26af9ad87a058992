# frozen_string_literal: true

module Heddle
  # A number of places, and a line of tasks and threads that wait for one. Limiter and Pool are built on it. It serves
  # tasks, threads without Heddle, and both at once.
  #
  # The entry that has waited longest is next, and a free place is handed to it directly: no later entry overtakes it.
  # An entry that is cancelled, timed out or killed while it waits leaves the line, and a place that was on its way to
  # it is not lost.
  class Line
    # A task or thread that wants a place: it waits, or it has one.
    class Entry
      # @return [Boolean] has it a place?
      attr_accessor :granted

      # @return [Completion, nil] the queue on which it waits, if it waits
      attr_accessor :wait
    end

    NOTHING = { Object => :never }.freeze
    private_constant :NOTHING

    # No exception is raised in the block, between giving something up and handing it on.
    def self.undisturbed(&) = Thread.handle_interrupt(NOTHING, &)

    # @return [Integer] how many places are taken
    attr_reader :count

    # @param places [Integer]
    # @param owner [Object] the object that a dump names as the reason of the wait
    def initialize(places, owner)
      @places = places
      @owner = owner
      @count = 0
      @waiting = {}.compare_by_identity # the entries that wait, the first one first
      @closed = false
      @lock = Thread::Mutex.new
      @process = Process.pid
    end

    # @return [Boolean] was it made in this process? Fibers that wait in a line of the parent of a fork exist in the
    #   parent only.
    def here? = @process == Process.pid

    # @return [Integer] how many entries wait
    def waiting = @waiting.size

    # @return [Boolean]
    def closed? = @closed

    # Waits for a place. Line#leave must follow, whatever happens here: an exception may be raised in a thread at the
    # end of any call, so the entry, not the call, says that it has a place.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [Boolean] false if the time is over, or if the line is closed
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def enter(entry, timeout = nil)
      @lock.synchronize do
        if @closed
          entry.granted = false
        elsif @count < @places
          entry.granted = true
          @count += 1
        else
          entry.wait = Completion.new(@owner)
          @waiting[entry] = true
        end
      end
      entry.wait&.pop(timeout:) # Line#leave closes it
      entry.granted ? true : false
    end

    # Hands the place on if the entry has one; else the entry leaves the line.
    #
    # @return [void]
    def leave(entry)
      locked { entry.granted ? hand_on : @waiting.delete(entry) }
    end

    # Hands on a place whose entry is not known to the caller.
    #
    # @return [Boolean] false if nobody has a place
    def release
      locked { @count.positive? && hand_on && true }
    end

    # Refuses all entries that wait, and all later ones.
    #
    # @return [void]
    def close
      locked do
        @closed = true
        @waiting.each_key { |entry| entry.wait.close }
        @waiting.clear
      end
    end

    private

    def locked(&)
      Line.undisturbed { @lock.synchronize(&) }
    end

    def hand_on
      entry, = @waiting.shift
      return @count = [@count - 1, 0].max unless entry # it may have been released already

      entry.granted = true
      entry.wait.close
    end
  end
  private_constant :Line
end
