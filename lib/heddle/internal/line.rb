# frozen_string_literal: true

module Heddle
  # A number of places, and the line of those who wait for one. Limiter and Pool are made of it. For tasks, for threads
  # without Heddle, and for both at once.
  #
  # Who has waited longest is next, and a place that becomes free is handed to that one: nobody who comes later
  # overtakes. One that is cancelled, timed out or killed while it waits leaves the line, and loses nothing that was on
  # its way to it.
  class Line
    # One that wants a place: it waits, or it has one.
    class Entry
      # @return [Boolean] has it a place?
      attr_accessor :granted

      # @return [Completion, nil] what it waits for, if it waits
      attr_accessor :wait
    end

    NOTHING = { Object => :never }.freeze
    private_constant :NOTHING

    # Nobody is struck in the block: between what is given up and what becomes of it.
    def self.undisturbed(&) = Thread.handle_interrupt(NOTHING, &)

    # @return [Integer] how many of them are taken
    attr_reader :count

    # @param places [Integer]
    # @param owner [Object] what a dump says that they wait for
    def initialize(places, owner)
      @places = places
      @owner = owner
      @count = 0
      @waiting = {}.compare_by_identity # the entries that wait, the first one first
      @closed = false
      @lock = Thread::Mutex.new
      @process = Process.pid
    end

    # @return [Boolean] was it made in this process? Those who wait in one of the parent of a fork are in the parent.
    def here? = @process == Process.pid

    # @return [Integer] how many wait
    def waiting = @waiting.size

    # @return [Boolean]
    def closed? = @closed

    # Waits for a place. Line#leave has to follow, whatever comes of this: what strikes a thread may do so at the end of
    # any call, so the entry, not the call, says that it has a place.
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
      entry.wait&.pop(timeout:) # is closed by who leaves
      entry.granted ? true : false
    end

    # Hands the place on, if the entry has one; else it no longer waits.
    #
    # @return [void]
    def leave(entry)
      locked { entry.granted ? hand_on : @waiting.delete(entry) }
    end

    # The same for a place whose entry is not at hand.
    #
    # @return [Boolean] false if nobody has a place
    def release
      locked { @count.positive? && hand_on && true }
    end

    # Sends away those who wait, and those who come later.
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
      return @count = [@count - 1, 0].max unless entry # (it may have been released already)

      entry.granted = true
      entry.wait.close
    end
  end
  private_constant :Line
  private_constant :Line
end
