# frozen_string_literal: true

module Heddle
  # Lets at most +limit+ tasks and threads in at the same time; the others wait in line. Tasks of several schedulers and
  # threads without Heddle can share it.
  #
  # The task or thread that has waited longest is always next. A task or thread that is cancelled, timed out or killed
  # while it waits leaves the line. If it was just about to be let in, the next in line is let in instead.
  #
  # In the child of a fork nobody is in, because tasks that were in exist in the parent only.
  #
  # @example At most four requests at the same time
  #   limiter = Heddle::Limiter.new(4)
  #   urls.each { |url| Heddle.spawn { limiter.acquire { Net::HTTP.get(url) } } }
  class Limiter
    # @param limit [Integer]
    # @raise [ArgumentError] if the limit is not positive
    def initialize(limit)
      Check.positive_integer("limit", limit)

      @limit = limit
      @line = Line.new(limit, self)
      @renewing = Thread::Mutex.new
    end

    # @return [Integer] how many are let in at the same time
    attr_reader :limit

    # @return [Integer] how many tasks and threads are in
    def count = line.count

    # @return [Integer] how many tasks and threads wait
    def waiting = line.waiting

    # Waits until the caller is let in. With a block: calls it, and leaves when the block ends, in whatever way. Without
    # a block: call Limiter#release afterwards, once, from any task or thread.
    #
    # @yield
    # @return [Object] the value of the block; without one, the limiter
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def acquire
      entry = Line::Entry.new
      line = self.line
      line.enter(entry)
      return (kept = self) unless block_given?

      yield
    ensure
      line&.leave(entry) unless kept
    end

    # Leaves, and lets the next one in.
    #
    # @return [self]
    # @raise [Heddle::Error] if nobody is in
    def release
      raise Error, "released more often than acquired" unless line.release

      self
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{count} of #{limit}#{", #{waiting} waiting" if waiting.positive?}>"
    end

    private

    def line
      return @line if @line.here?

      @renewing.synchronize { @line = Line.new(@limit, self) unless @line.here? }
      @line
    end
  end
end
