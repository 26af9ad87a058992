# frozen_string_literal: true

module Heddle
  class Pool
    # A connection, which may be nil.
    Slot = Struct.new(:connection)
    private_constant :Slot

    # One call of Pool#with: its place, and the connection that it has received. All calls of a fiber, for any pools,
    # form a chain, of which the innermost is fiber-local.
    class Holding < Line::Entry
      # @return [Stock] the connections to which it returns its own
      attr_reader :stock

      # @return [Slot, nil]
      attr_accessor :slot

      # @return [Boolean] must the connection not be used again?
      attr_accessor :broken

      # @return [Holding, nil] the call around it
      attr_reader :outer

      # @return [Holding, nil] the innermost call of this fiber that has a connection of this stock
      def self.here(stock)
        holding = Thread.current[:heddle_holding]
        holding = holding.outer until holding.nil? || holding.stock.equal?(stock)
        holding
      end

      def initialize(stock)
        super()
        @stock = stock
      end

      def connection = @slot.connection

      def step_in
        @outer = Thread.current[:heddle_holding]
        Thread.current[:heddle_holding] = self
      end

      def step_out
        Thread.current[:heddle_holding] = @outer if Thread.current[:heddle_holding].equal?(self)
      end
    end
    private_constant :Holding

    # The connections of a pool in one process. There are never more connections than places: a call that has a place,
    # and finds no free connection, makes one.
    class Stock
      # @param size [Integer]
      # @param owner [Pool]
      # @param make [#call]
      # @param check [#call, nil]
      # @param close [#call]
      # @param before [Stock, nil] the stock of the parent process. It is kept, because the end of one of its
      #   connections would tell the server to end the parent's connection.
      def initialize(size, owner, make:, check:, close:, before: nil)
        @line = Line.new(size, owner)
        @make = make
        @check = check
        @close = close
        @before = before
        @slots = {}.compare_by_identity # the number of connections that are not closed
        @idle = [] # the free connections, the last used one at the end
        @drained = Completion.new("those who hold a connection of", owner)
        @line.close if before&.closed?
      end

      # @return [Integer] how many connections wait for their next use
      def idle = @idle.size

      # @return [Integer] how many calls have a place
      def in_use = @line.count

      # @return [Integer] how many calls wait for a place
      def waiting = @line.waiting

      # @return [Boolean]
      def closed? = @line.closed?

      # @return [Boolean] was it made in this process?
      def here? = @line.here?

      # @return [Stock] for the child of a fork
      def renew(size, owner)
        Stock.new(size, owner, make: @make, check: @check, close: @close, before: self)
      end

      # Waits for a place, then takes or makes a connection.
      #
      # @return [Boolean] false if no place became free
      def take(holding, timeout)
        return false unless @line.enter(holding, timeout)

        take_usable(holding)
        holding.slot || make(holding)
        true
      end

      # Returns the connection and the place that #take gave, if it gave any. The first call of each part runs even if
      # exceptions are raised in this thread, however many.
      def give_back(holding)
        close_broken(holding) if holding.broken && holding.slot
      ensure
        begin
          Line.undisturbed { take_back(holding) }
        ensure
          drain if closed?
        end
      end

      # Refuses the calls that wait, and closes the connections: the idle ones now, the others when they are given back.
      #
      # @return [StandardError, nil] the first error
      def shut
        @line.close
        drain
        @error
      end

      # Waits until all connections are closed.
      # @raise [StandardError] the first error of a connection that was closed because the pool was closed
      def outlast
        @drained.pop
        raise @error if @error
      end

      private

      # Takes a connection that passes its check. A connection that fails it is closed, and the next one is examined.
      def take_usable(holding)
        while Line.undisturbed { holding.slot = @idle.pop }
          return if usable?(holding)

          close_broken(holding)
        end
      end

      # Checks a connection. An interrupted check counts as failed.
      def usable?(holding)
        return true unless @check

        holding.broken = true
        holding.broken = false if @check.call(holding.connection)
        !holding.broken
      rescue StandardError
        false
      end

      def make(holding)
        connection = @make.call
        Line.undisturbed do
          holding.slot = Slot.new(connection)
          @slots[holding.slot] = true
        end
      end

      def take_back(holding)
        holding.step_out
        @idle.push(holding.slot) if holding.slot
        @line.leave(holding)
      end

      # Closes a broken connection. An error of the close is ignored, because it only says that the connection is
      # broken.
      def close_broken(holding)
        close(holding.slot)
      rescue StandardError
        nil
      ensure
        holding.slot = holding.broken = nil
      end

      # Closes a connection without an interruption by a cancel or a timeout around it. In a thread without Heddle a
      # shield would delay the timeouts inside of it as well. In the child of a fork the connection belongs to the
      # parent and is not closed.
      def close(slot)
        return unless here?

        Scheduler.current ? Heddle.shield { @close.call(slot.connection) } : @close.call(slot.connection)
      ensure
        @slots.delete(slot)
      end

      # Closes the idle connections. Several threads may do this at the same time: the thread that takes a slot out
      # closes its connection.
      def drain
        while (slot = @idle.pop)
          begin
            close(slot)
          rescue StandardError => e
            @error ||= e
          end
        end
      ensure
        drain unless @idle.empty? # an exception has interrupted the close of one
        @drained.close if in_use.zero? && @slots.empty? # in this order: the owner of a place may still make one
      end
    end
    private_constant :Stock
  end
end
