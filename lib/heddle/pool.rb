# frozen_string_literal: true

require_relative "pool/stock"

module Heddle
  # A number of connections (or of anything else that only one at a time may use) that are made when they are needed,
  # and used again. For tasks, for threads without Heddle, and for both at once.
  #
  # Who has waited longest for one is next. One that is cancelled, timed out or killed while it waits leaves the line,
  # and nothing is lost that was on its way to it.
  #
  # A pool needs no close. One that is made in Heddle.run, or in a scope, is closed when that ends; any other lasts
  # until it is closed, or until nobody knows it any more.
  #
  # A connection that may be broken is closed and replaced, not used again:
  #
  # - The block of #with ends by a cancel, a timeout around it, or anything else that is no StandardError: an answer may
  #   still be on its way, and the next one would take it for its own. (That a fiber is killed cannot be seen; it looks
  #   like a +return+.)
  # - The block raises an IOError, a SystemCallError, a Timeout::Error, or what +broken:+ names.
  # - The block calls #discard.
  # - +check:+ refuses it when it is about to be used again.
  #
  # In the child of a fork the pool is empty. What the parent has made stays the parent's.
  #
  # @example Ten connections for any number of tasks
  #   pool = Heddle::Pool.new(size: 10, timeout: 5) { PG.connect(dbname: "shop") }
  #   orders = Heddle.map(ids) { |id| pool.with { |db| db.exec_params("SELECT ...", [id]).first } }
  class Pool
    # Raised by Pool#with when no connection has become free in time.
    class TimeoutError < Heddle::TimeoutError; end

    # Raised by Pool#with when the pool is closed, also to those who were waiting.
    class ClosedError < Error; end

    BROKEN = [IOError, SystemCallError, Timeout::Error].freeze
    private_constant :BROKEN

    # Calls the connection's own method, if there is one.
    CLOSE = Ractor.make_shareable(->(connection) { connection.close if connection.respond_to?(:close) })
    private_constant :CLOSE

    # @return [Integer] how many connections there may be
    attr_reader :size

    # @return [Numeric, nil] seconds to wait for one
    attr_reader :timeout

    # @param size [Integer] how many connections there may be at the same time
    # @param timeout [Numeric, nil] how many seconds #with waits for one; nil: as long as it takes
    # @param check [#call, nil] is called with a connection that was used before, when it is about to be used again. If
    #   it returns nil or false, or raises a StandardError, the connection is closed, and another one is taken or made.
    # @param broken [#===, Array<#===>] errors of the block after which its connection is not used again, beside those
    #   named above: classes, modules or Procs
    # @param close [#call, nil] closes a connection; nil: its own method close does, if it has one
    # @yield makes a connection; it may wait. What it raises is raised by #with, and the next in line may try.
    # @yieldreturn [Object] also nil
    # @raise [ArgumentError]
    def initialize(size:, timeout: nil, check: nil, broken: [], close: nil, &make)
      Check.refuse("Heddle::Pool.new needs a block that makes a connection") unless make

      Check.positive_integer("size", size)
      Check.time("timeout", timeout)
      Check.callable("check", check)
      Check.callable("close", close)
      @size = size
      @timeout = timeout
      @broken = [*BROKEN, *broken].freeze
      Check.patterns("broken", @broken)
      @stock = Stock.new(size, self, make:, check:, close: close || CLOSE)
      @renewing = Thread::Mutex.new
      @scope = Scope.here
      @scope&.own(self)
    end

    # Calls the block with a connection that nobody else uses meanwhile. Inside of the block, in the same task, #with
    # calls its own block with the same connection at once: so methods that share a transaction may each call it. (The
    # same task means the same fiber. Tasks that the block spawns, and Enumerators that it calls +next+ of, get their
    # own.)
    #
    # @param timeout [Numeric, nil] seconds to wait for a connection; nil: as long as it takes
    # @yieldparam connection [Object]
    # @return [Object] the value of the block
    # @raise [Heddle::Pool::TimeoutError] when no connection has become free in time
    # @raise [Heddle::Pool::ClosedError] when the pool is closed
    # @raise [ArgumentError] without a block, or if the timeout is no number
    # @raise [Exception] what the block raises, or the one that makes connections
    def with(timeout: @timeout, &)
      Check.refuse("Heddle::Pool#with needs a block") unless block_given?

      holding = held_here
      return use(holding, &) if holding

      Check.time("timeout", timeout)
      holding = Holding.new(stock)
      begin
        take(holding, timeout)
        use(holding, &)
      ensure
        holding.stock.give_back(holding)
      end
    end

    # Says that the connection which the caller holds is broken. It is closed when its (outermost) #with ends, and
    # another one is made when it is needed.
    #
    # @return [void]
    # @raise [Heddle::Error] outside of a block of #with
    def discard
      holding = held_here or raise Error, "no connection of this pool is held here: call discard in the block of with"

      holding.broken = true
      nil
    end

    # Closes the pool: whoever waits for a connection, or asks for one later, gets a Heddle::Pool::ClosedError. Those
    # who hold one finish. Each connection is closed when it is given back. Waits for that; only a caller who holds one
    # is not held up. A second call waits, too.
    #
    # @return [void]
    # @raise [StandardError] the first error that came of closing a connection, when all are closed
    def close
      forget_scope&.disown(self)
      stock.shut
      stock.outlast unless held_here
      nil
    end

    # @return [Boolean] has it been closed, or has its scope ended?
    def closed? = stock.closed?

    # @return [Integer] how many connections are in use or being made
    def in_use = stock.in_use

    # @return [Integer] how many connections are kept for their next use
    def idle = stock.idle

    # @return [Integer] how many wait for a connection
    def waiting = stock.waiting

    # @return [String]
    def inspect
      facts = ["#{in_use} of #{size} in use"]
      facts << "#{idle} idle" if idle.positive?
      facts << "#{waiting} waiting" if waiting.positive?
      facts << "closed" if closed?
      "#<#{self.class} #{facts.join(", ")}>"
    end

    # @private Its tasks hold no connection any more. Who else holds one closes it.
    def scope_ended
      forget_scope
      @ended = ": the Heddle.run or Heddle.scope in which it was made has ended (make it outside, if it is to last)"
      error = stock.shut
      raise error if error
    end

    private

    # It knows its owner's fiber.
    def forget_scope = @scope.tap { @scope = nil }

    # What was made before a fork is the parent's.
    def stock
      return @stock if @stock.here?

      @renewing.synchronize { @stock = @stock.renew(size, self) unless @stock.here? }
      @stock
    end

    def held_here = Holding.here(stock)

    def take(holding, timeout)
      unless holding.stock.take(holding, timeout)
        raise ClosedError, "the pool is closed#{@ended}" if closed?

        raise TimeoutError, "no connection has become free in #{timeout} s: all #{size} are in use"
      end
      holding.step_in
    end

    def use(holding)
      value = yield(holding.connection)
      completed = true
      value
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      before = holding.broken
      holding.broken = true # also when another strike comes here
      holding.broken = before unless breaks?(e)
      raise
    ensure
      holding.broken = true if !completed && Thread.current.status == "aborting" # it is being killed
    end

    # That another pool had no connection says nothing about this one.
    def breaks?(error)
      return false if error.is_a?(TimeoutError)

      !error.is_a?(StandardError) || @broken.any? { |kind| kind === error } # rubocop:disable Style/CaseEquality
    end
  end
end
