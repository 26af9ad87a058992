# frozen_string_literal: true

require_relative "../line"

module Heddle
  class Pool
    # A connection. (It may be nil.)
    Slot = Struct.new(:connection)
    private_constant :Slot

    # One call of Pool#with: its place, and what it has got.
    class Holding < Line::Entry
      # @return [Stock] where it gives back what it has
      attr_reader :stock

      # @return [Slot, nil]
      attr_accessor :slot

      # @return [Boolean] is the connection not to be used again?
      attr_accessor :broken

      # @return [Holding, nil] the one of this fiber that is around it, of any pool
      attr_accessor :outer

      def initialize(stock)
        super()
        @stock = stock
      end

      def connection = @slot.connection
    end
    private_constant :Holding

    # The connections of a pool in one process. There are never more of them than places: who has a place, and finds
    # none that is free, makes one.
    class Stock
      # @param size [Integer]
      # @param owner [Pool]
      # @param make [#call]
      # @param check [#call, nil]
      # @param close [#call]
      # @param before [Stock, nil] that of the parent process. It is kept, lest the end of one of its connections tells
      #   the server to end the parent's.
      def initialize(size, owner, make:, check:, close:, before: nil)
        @line = Line.new(size, owner)
        @make = make
        @check = check
        @close = close
        @before = before
        @process = Process.pid
        @slots = {}.compare_by_identity # of the connections that are not closed
        @idle = [] # those that nobody holds, the one that was used last at the end
        @drained = Completion.new("those who hold a connection of", owner)
        @line.close if before&.closed?
      end

      # @return [Integer] how many connections wait for their next use
      def idle = @idle.size

      # @return [Integer] how many have a place
      def in_use = @line.count

      # @return [Integer] how many wait for a place
      def waiting = @line.waiting

      # @return [Boolean]
      def closed? = @line.closed?

      # @return [Boolean] was it made in this process?
      def here? = @process == Process.pid

      # @return [Stock] for the child of a fork
      def renew(size, owner)
        Stock.new(size, owner, make: @make, check: @check, close: @close, before: self)
      end

      # Waits for a place, then takes or makes a connection.
      #
      # @return [Boolean] false if there was no place
      def take(holding, timeout)
        return false unless @line.enter(holding, timeout)

        take_usable(holding)
        holding.slot || make(holding)
        true
      end

      # Gives back what came of #take, whatever that was. Nobody must be struck meanwhile.
      def give_back(holding)
        put_back(holding) if holding.slot
      ensure
        @line.leave(holding)
        drain if closed?
      end

      # Refuses those who wait, and closes the connections: the idle ones now, those in use when they are given back.
      #
      # @return [StandardError, nil] what was raised first
      def shut
        @line.close
        drain
        @error
      end

      # Waits until all connections are closed.
      # @raise [StandardError] what was raised first when one was closed because the pool was
      def outlast
        @drained.pop
        raise @error if @error
      end

      private

      # One that fails its check is closed, and the next one is looked at.
      def take_usable(holding)
        while Line.undisturbed { holding.slot = @idle.pop }
          return if usable?(holding)

          Line.undisturbed { put_back(holding) }
        end
      end

      # A check that is interrupted is a failed one.
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

      def put_back(holding)
        return @idle.push(holding.slot) unless holding.broken

        begin
          close(holding.slot)
        rescue StandardError
          nil # that it cannot be closed says no more than that it is broken
        ensure
          holding.slot = holding.broken = nil
        end
      end

      def close(slot)
        @close.call(slot.connection)
      ensure
        @slots.delete(slot)
      end

      # Several may do so at the same time: whoever takes a slot out closes its connection.
      def drain
        while (slot = @idle.pop)
          begin
            close(slot)
          rescue StandardError => e
            @error ||= e
          end
        end
        @drained.close if in_use.zero? && @slots.empty? # in this order: who has a place may still make one
      end
    end
    private_constant :Stock
  end
end
