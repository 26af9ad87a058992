# frozen_string_literal: true

require_relative "internal/selection"

module Heddle
  using Internal

  # Hands items from tasks and threads to other tasks and threads, of one Heddle.run, of several, or without any. Ruby's
  # Queue and SizedQueue do most of this, too. A channel has four things more:
  #
  # - the hand-over: with the capacity 0, +push+ returns when a receiver has taken the item
  # - an error of the sender reaches the receivers: +close(error)+, +feed+
  # - it ends when its last sender has ended: +feed+
  # - Heddle.select waits for several channels, and takes one item
  #
  # An item is received once. If a push is cancelled or timed out while it waits, either a receiver has taken the item
  # before, and the push returns (the cancel is raised at the next wait), or the item is not in the channel. If a pop is
  # cancelled, the item stays in the channel, for the next receiver. The first in line is served first.
  #
  # In the child of a fork the channel has the items that were in it. Senders and receivers that wait exist in the
  # parent only.
  #
  # @example Two senders, and an end that comes by itself
  #   pages = Heddle::Channel.new(10, name: "pages")
  #   Heddle.run do
  #     Heddle.spawn { pages.feed { Heddle.each(urls, limit: 2) { |url| pages << fetch(url) } } }
  #     pages.each { |page| store(page) }
  #   end
  class Channel
    include Enumerable

    # Raised by Channel#push when the channel is closed, also where a push waits. If it was closed with an error, that
    # is its cause. Channel#pop raises it if a sender was cancelled, and the items have no regular end.
    class ClosedError < Error; end

    # A push: its item, whether the channel has accepted the item, and the queue on which it waits for that.
    Offer = Struct.new(:item, :taken, :wait)
    private_constant :Offer

    # @return [Integer] how many items the channel holds before a push waits
    attr_reader :capacity

    # @return [String, Symbol, nil] the name for reports
    def name = @name.respond_to?(:call) ? @name.call : @name

    # @param capacity [Integer] how many items the channel holds before a push waits; 0: each push waits until a
    #   receiver takes its item
    # @param name [String, Symbol, #call, nil] for reports; a Proc is called when a report is made
    # @raise [ArgumentError] if the capacity is no Integer or negative, or if the name is neither a String nor a Symbol
    def initialize(capacity = 0, name: nil)
      unless capacity.is_a?(Integer) && !capacity.negative?
        Check.refuse("capacity: must be 0 or a positive Integer, not #{Check.shown(capacity)}")
      end

      @capacity = capacity
      @name = name && Check.task_name(name)
      @items = []
      @closed = false
      @error = nil
      @lock = Thread::Mutex.new
      begin_anew
    end

    # Adds an item. Waits until the channel has a place for it, or, with the capacity 0, until a receiver takes it.
    #
    # @param item [Object]
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [self, nil] nil if the time is over; then the item is not in the channel
    # @raise [Heddle::Channel::ClosedError] if the channel is closed, or is closed while it waits
    # @raise [ArgumentError] if the timeout is no number
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def push(item, timeout: nil)
      Check.time("timeout", timeout)
      CoreExt.spend_turn(nil)
      offer = Offer.new(item)
      wait_until_taken(offer, timeout)
      return self if offer.taken

      refuse_when_closed
      nil
    end

    # Adds an item as #push does.
    #
    # @param item [Object]
    # @return [self]
    # @raise [Heddle::Channel::ClosedError] if the channel is closed, or is closed while it waits
    def <<(item) = push(item)

    # Takes the first item. Waits until the channel has one.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Object, nil] nil if the time is over, or if the channel is closed and has no item left
    # @raise [Exception] the error with which the channel was closed, when it has no item left
    # @raise [ArgumentError] if the timeout is no number
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def pop(timeout: nil)
      Check.time("timeout", timeout)
      Selection.new([self]).first(timeout)&.last&.first
    end

    # Takes one item after the other, until the channel is closed and has no item left. An item is taken when the block
    # has returned for the item before. So a break loses no item.
    #
    # @yieldparam item [Object]
    # @return [self]
    # @raise [Exception] the error with which the channel was closed, when it has no item left
    def each
      return enum_for(:each) unless block_given?

      until (received = Selection.new([self]).first.last).empty?
        yield received.first
      end
      self
    end

    # Runs the block as a sender, in a scope, and waits for the tasks that it spawns. Then it closes the channel, unless
    # another feed of the channel is still running: the last one closes it. If the block fails, its error closes the
    # channel at once, and is raised here, too. Starts a run if none exists.
    #
    # If the block is cancelled, the receivers get a ClosedError after the remaining items, because the items have no
    # regular end.
    #
    # @yieldparam channel [Heddle::Channel]
    # @return [Object] the value of the block
    # @raise [Heddle::Channel::ClosedError] if the channel is closed
    # @raise [ArgumentError] without a block
    # @raise [Exception] the error of the block
    def feed
      Check.refuse("Heddle::Channel#feed needs a block") unless block_given?

      locked do
        refuse_when_closed
        @feeds += 1
      end
      begin
        Heddle.scope { yield self }
      rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
        close(e)
        raise
      ensure
        close(Thread.current.status == "aborting" ? Cancelled.new : nil) if locked { @feeds -= 1 } <= 0
      end
    end

    # Ends the channel: it accepts no item any more, also not those of a push that waits. Items that it has accepted can
    # be received. After them, receivers get nil or the error. A second close has no effect.
    #
    # @param error [Exception, nil] is raised where an item is taken, when no item is left. In place of a cancel and of
    #   an error that is meant for the program (SystemExit), receivers get a ClosedError.
    # @return [self]
    # @raise [ArgumentError] if the error is no exception
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def close(error = nil)
      unless error.nil? || error.is_a?(Exception)
        Check.refuse("error: must be an exception or nil, not #{Check.shown(error)}")
      end

      locked { end_with(error) unless @closed }
      self
    end

    # @return [Boolean] does it accept no item any more?
    def closed? = @closed

    # @return [Boolean] is it closed, and has it no item left?
    def ended? = @closed && @items.empty?

    # @return [Integer] how many items are in it, without those of a push that waits
    def size = @items.size

    # @return [Boolean] is no item in it?
    def empty? = @items.empty?

    # @return [String]
    def inspect
      facts = ["#{size} of #{capacity}"]
      facts << "#{@offers.size} waiting to push" unless @offers.empty?
      receivers = [@again, @receivers, @woken].sum(&:size)
      facts << "#{receivers} waiting to pop" if receivers.positive?
      facts << "closed" if closed?
      "#<#{self.class} #{"#{Wording.in_line(name)}: " if @name}#{facts.join(", ")}>"
    end

    # @private Gives a receiver an item, or the end of the channel.
    # @param receiver [Selection] waits here, or has not begun to wait
    # @return [Boolean, nil] nil: it has to wait
    def receive(receiver)
      locked do
        woken = @woken.delete(receiver)
        next receiver.found(self, [take]) unless @items.empty? && @offers.empty?

        @again[receiver] = true if woken
        next unless @closed

        TaskFailure.raise_again(@error) if @error
        receiver.found(self, [])
      end
    end

    # @private Takes an item back: an exception has come before the receiver could return it.
    def take_back(received)
      locked do
        @items.unshift(*received)
        wake_receiver
      end
    end

    # @private
    def add_receiver(receiver) = locked { @receivers[receiver] = true }

    # @private Removes a receiver. If it was woken for an item that it has not taken, the next one is woken.
    def remove_receiver(receiver)
      locked do
        @again.delete(receiver)
        @receivers.delete(receiver)
        wake_receiver if @woken.delete(receiver)
      end
    end

    private

    def locked
      Line.undisturbed do
        @lock.synchronize do
          begin_anew unless @process == Process.pid
          yield
        end
      end
    end

    # Forgets the senders and receivers that wait in the parent of a fork.
    def begin_anew
      @process = Process.pid
      @offers = {}.compare_by_identity # the pushes that wait, the first one first
      @receivers = {}.compare_by_identity # the receivers that wait for an item, the first one first
      @again = {}.compare_by_identity # receivers that have been woken in vain: they come before the others
      @woken = {}.compare_by_identity # receivers that have been woken, and have not looked yet
      @feeds = 0
    end

    def refuse_when_closed
      raise ClosedError, "the channel is closed: #{inspect}", cause: @error if @closed
    end

    def put(offer)
      refuse_when_closed
      if @items.size < @capacity
        @items << offer.item
        offer.taken = true
      else
        offer.wait = Completion.new(@capacity.zero? ? "a receiver of" : "a place in", self)
        @offers[offer] = true
      end
      wake_receiver
    end

    def take
      item = @items.empty? ? accept : @items.shift
      @items << accept while @items.size < @capacity && !@offers.empty?
      item
    end

    def accept
      offer, = @offers.shift
      offer.taken = true
      offer.wait.close
      offer.item
    end

    # An exception that arrives when the item is already taken is raised at the next wait: put_off comes last, because
    # the end of a mask raises it, too.
    def wait_until_taken(offer, timeout)
      locked { put(offer) }
      offer.wait.pop(timeout:) unless offer.taken
      left = offer.taken
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      left = true
      locked { @offers.delete(offer) }
      raise unless offer.taken && put_off(e)
    ensure
      locked { @offers.delete(offer) } unless left # its time is over, or the fiber is being killed
    end

    def put_off(error)
      scheduler = Scheduler.current
      return if scheduler.nil? || FOR_THE_PROGRAM.any? { |kind| error.is_a?(kind) } || scheduler.for_the_thread?(error)

      scheduler.put_back(error)
      true
    end

    def wake_receiver
      return if @items.empty? && @offers.empty?

      receiver, = @again.shift || @receivers.shift
      wake(receiver) if receiver
    end

    def wake(receiver)
      @woken[receiver] = true
      receiver.wake
    end

    def end_with(error)
      @closed = true
      @error = error
      if [Cancelled, *FOR_THE_PROGRAM].any? { |kind| error.is_a?(kind) }
        @error = ClosedError.new("a sender of the channel has ended early: #{Wording.of(error, :message)}")
      end
      @offers.each_key { |offer| offer.wait.close }
      @offers.clear
      [@again, @receivers].each { |line| wake(line.shift.first) until line.empty? }
    end
  end
end
