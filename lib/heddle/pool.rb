# frozen_string_literal: true

require_relative "pool/stock"

module Heddle
  # A number of connections that are made when they are needed, and used again. It works for other objects, too, that
  # only one task may use at a time. It serves tasks, threads without Heddle, and both at once.
  #
  # The task or thread that has waited longest for a connection is next. If it is cancelled, timed out or killed while
  # it waits, it leaves the line, and a connection that was on its way to it is not lost.
  #
  # A pool needs no close. A pool that is made in Heddle.run, or in a scope, is closed when that ends; any other lasts
  # until it is closed, or until no reference to it exists.
  #
  # A connection that may be broken is closed and replaced, not used again:
  #
  # - The block of #with ends by a cancel, a timeout around it, or any other exception that is not a StandardError: an
  #   answer may still be on its way, and the next user would take it for its own. The pool cannot notice that a fiber
  #   is killed, because that looks like a +return+.
  # - The block raises an IOError, a SystemCallError, a Timeout::Error, or an error that +broken:+ names.
  # - The block calls #discard.
  # - +check:+ refuses it when it is about to be used again.
  #
  # In the child of a fork the pool is empty. Connections that the parent has made stay with the parent.
  #
  # @example Ten connections for any number of tasks
  #   pool = Heddle::Pool.new(size: 10, timeout: 5) { PG.connect(dbname: "shop") }
  #   orders = Heddle.map(ids) { |id| pool.with { |db| db.exec_params("SELECT ...", [id]).first } }
  class Pool
    # Raised by Pool#with when no connection has become free in time.
    class TimeoutError < Heddle::TimeoutError; end

    # Raised by Pool#with when the pool is closed, also in tasks and threads that were waiting.
    class ClosedError < Error; end

    BROKEN = [IOError, SystemCallError, Timeout::Error].freeze
    private_constant :BROKEN

    # Calls the connection's own method close, if it has one.
    CLOSE = Ractor.make_shareable(->(connection) { connection.close if connection.respond_to?(:close) })
    private_constant :CLOSE

    # @return [Integer] the largest number of connections
    attr_reader :size

    # @return [Numeric, nil] seconds to wait for a connection
    attr_reader :timeout

    # @param size [Integer] how many connections there may be at the same time
    # @param timeout [Numeric, nil] how many seconds #with waits for one; nil: without a limit
    # @param check [#call, nil] is called with a connection that was used before, when it is about to be used again. If
    #   it returns nil or false, or raises a StandardError, the connection is closed, and another one is taken or made.
    # @param broken [#===, Array<#===>] errors of the block after which its connection is not used again, beside the
    #   errors named above: classes, modules or Procs
    # @param close [#call, nil] closes a connection; nil: the connection's own method close is called, if it has one
    # @yield makes a connection; the block may wait. An error of the block is raised by #with, and the next in line may
    #   try.
    # @yieldreturn [Object] the connection, which may also be nil
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
    # calls its own block with the same connection at once: so methods that share a transaction may each call it. A task
    # means a fiber here. Tasks that the block spawns, and Enumerators on which it calls +next+, get connections of
    # their own.
    #
    # @param timeout [Numeric, nil] seconds to wait for a connection; nil: without a limit
    # @yieldparam connection [Object]
    # @return [Object] the value of the block
    # @raise [Heddle::Pool::TimeoutError] when no connection has become free in time
    # @raise [Heddle::Pool::ClosedError] when the pool is closed
    # @raise [ArgumentError] without a block, or if the timeout is no number
    # @raise [Exception] an error of the block, or of the block that makes connections
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

    # Says that the connection which the caller holds is broken. The connection is closed when its (outermost) #with
    # ends, and another one is made when it is needed.
    #
    # @return [void]
    # @raise [Heddle::Error] outside of a block of #with
    def discard
      holding = held_here or raise Error, "no connection of this pool is held here: call discard in the block of with"

      holding.broken = true
      nil
    end

    # Closes the pool: tasks and threads that wait for a connection, or ask for one later, get a
    # Heddle::Pool::ClosedError. Tasks that hold a connection finish. Each connection is closed when it is given back.
    # Waits until all connections are closed, except when the caller itself holds one. A second call waits, too.
    #
    # @return [void]
    # @raise [StandardError] the first error of a connection's close, when all are closed
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

    # @return [Integer] how many tasks and threads wait for a connection
    def waiting = stock.waiting

    # @return [String]
    def inspect
      facts = ["#{in_use} of #{size} in use"]
      facts << "#{idle} idle" if idle.positive?
      facts << "#{waiting} waiting" if waiting.positive?
      facts << "closed" if closed?
      "#<#{self.class} #{facts.join(", ")}>"
    end

    # @private Closes the pool when its scope has ended; the scope's tasks hold no connection then. Another holder of a
    #   connection closes it.
    def scope_ended
      forget_scope
      @ended = ": the Heddle.run or Heddle.scope in which it was made has ended (make it outside, if it is to last)"
      error = stock.shut
      raise error if error
    end

    private

    # Forgets the scope, which would keep its owner's fiber alive.
    def forget_scope = @scope.tap { @scope = nil }

    # Returns the connections of this process. Connections that were made before a fork belong to the parent.
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
      holding.broken = true # also when another exception is raised here
      holding.broken = before unless breaks?(e)
      raise
    ensure
      holding.broken = true if !completed && Thread.current.status == "aborting" # the fiber is being killed
    end

    # Does the error break the connection? An error that another pool had no connection says nothing about this one.
    def breaks?(error)
      return false if error.is_a?(TimeoutError)

      !error.is_a?(StandardError) || @broken.any? { |kind| kind === error } # rubocop:disable Style/CaseEquality
    end
  end
end
