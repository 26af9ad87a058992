# frozen_string_literal: true

require_relative "check"

module Heddle
  # Lets so many in at the same time; the others wait in line. For tasks, for threads without Heddle, and for both at
  # once, also of several schedulers.
  #
  # Who has waited longest is next, and what becomes free is handed to that one: nobody who comes later overtakes. One
  # that is cancelled, timed out or killed while it waits leaves the line, and loses nothing that was on its way to it.
  #
  # @example At most four requests at the same time
  #   limiter = Heddle::Limiter.new(4)
  #   urls.each { |url| Heddle.spawn { limiter.acquire { Net::HTTP.get(url) } } }
  class Limiter
    # One that wants in: it waits, or it is in.
    class Entry
      # @return [Boolean] is it in?
      attr_accessor :granted

      # @return [Completion, nil] what it waits for, if it waits
      attr_accessor :wait
    end
    private_constant :Entry

    NOTHING = { Object => :never }.freeze
    private_constant :NOTHING

    # @return [Integer] how many are let in at the same time
    attr_reader :limit

    # @param limit [Integer]
    # @raise [ArgumentError] if it is not positive
    def initialize(limit)
      Check.positive_integer("limit", limit)

      @limit = limit
      @count = 0
      @line = {}.compare_by_identity # the entries that wait, the first one first
      @lock = Thread::Mutex.new
    end

    # @return [Integer] how many are in
    attr_reader :count

    # @return [Integer] how many wait
    def waiting = @line.size

    # Waits until it is let in. With a block: calls it, and leaves when it ends, in whatever way. Without one: Limiter
    # #release has to be called, once, by whomever.
    #
    # @yield
    # @return [Object] the value of the block; without one, the limiter
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def acquire
      entry = Entry.new
      enter(entry)
      return (kept = self) unless block_given?

      yield
    ensure
      leave(entry) unless kept
    end

    # Leaves, and lets the next one in.
    #
    # @return [self]
    # @raise [Heddle::Error] if nobody is in
    def release
      locked do
        raise Error, "released more often than acquired" if @count.zero?

        hand_on
      end
      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{count} of #{limit}#{", #{waiting} waiting" if waiting.positive?}>"
    end

    private

    # What strikes a thread may do so at the end of any call, so the entry, not the call, says that it is in.
    def enter(entry)
      @lock.synchronize do
        if @count < @limit
          entry.granted = true
          @count += 1
        else
          entry.wait = Completion.new(inspect)
          @line[entry] = true
        end
      end
      entry.wait&.pop # is closed by who leaves
    end

    def leave(entry)
      locked { entry.granted ? hand_on : @line.delete(entry) }
    end

    # Nobody is struck between what he gives up and what becomes of it.
    def locked(&)
      Thread.handle_interrupt(NOTHING) { @lock.synchronize(&) }
    end

    def hand_on
      entry, = @line.shift
      return @count -= 1 unless entry

      entry.granted = true
      entry.wait.close
    end
  end
end
