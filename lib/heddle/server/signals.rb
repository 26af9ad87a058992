# frozen_string_literal: true

require_relative "../internal/clock"

module Heddle
  class Server
    # Signals as events, in the order in which they came. A handler writes a byte to a pipe: that wakes a select, and a
    # task. (A Queue would not do: where the handler runs in the thread that waits in pop(timeout:), Ruby wakes it only
    # when the time is over.) A child process has the same handlers until it sets its own: what comes for it meanwhile
    # is not for this one.
    #
    # @private
    class Signals
      # @param meanings [Hash{String => Symbol, nil}] of each signal; nil: it does nothing. (By a handler: programs that
      #   are started from here would inherit IGNORE.)
      # @param once [Array<String>] signals that count only once
      # @param others [Array<Symbol>] what {#push} may be given
      def initialize(meanings, once: [], others: [])
        @meanings_of = meanings
        @once = once
        @meanings = [*meanings.values, *others]
        @kept = [] # what has come while something else was waited for
        @reader, @writer = IO.pipe
        @owner = ::Process.pid
        meanings.each_key { |name| follow(name) }
        early = defined?(EARLY_SIGNALS) ? EARLY_SIGNALS : []
        push(meanings[early.shift]) until early.empty?
      end

      # @return [IO] has something to be read when one has come
      def to_io = @reader

      # @param timeout [Numeric, nil] seconds
      # @return [Symbol, nil] the meaning of the next one
      def pop(timeout: nil)
        @kept.shift || next_one(timeout)
      end

      # An event of the program itself.
      #
      # @param meaning [Symbol]
      def push(meaning)
        @writer.write_nonblock(@meanings.index(meaning).chr, exception: false) if meaning && ::Process.pid == @owner
      end

      # Waits for something else. What comes meanwhile is kept for {#pop}.
      #
      # @param other [IO] that is to have something to be read
      # @param timeout [Numeric, nil] seconds
      # @param but [Array<Symbol>] the meanings that end the wait, also if they have come before
      # @return [Boolean] whether it has
      def wait_for(other, timeout, but:)
        ends = timeout && (Clock.now + timeout)
        until come?(but)
          found, = IO.select([other, @reader], nil, nil, ends && [ends - Clock.now, 0].max)
          return !found.nil? unless found&.include?(@reader)
        end
        false
      end

      # @param meanings [Array<Symbol>]
      # @return [Boolean] whether one of these is to be popped
      def come?(meanings)
        @kept << next_one(0) while @reader.wait_readable(0)
        @kept.intersect?(meanings)
      end

      # Runs a block that may take long, and hears meanwhile.
      #
      # @param meanings [Array<Symbol>]
      # @param heard [#call] is called in a thread if one of these comes
      def during(meanings, heard)
        ended, over = IO.pipe
        listener = Thread.new { wait_for(ended, nil, but: meanings) || heard.call }
        yield
      ensure
        over.close
        listener.join
        ended.close
      end

      # Before another program takes the place of this one. What asks for a restart is ignored until that has handlers
      # of its own, for it begins with what is there then. What stops the program ends it at once: by the kernel, for
      # Ruby (DEFAULT) would only note it, and forget it in the exec.
      #
      # @param ignored [Array<String>]
      # @param unless_come [Array<Symbol>]
      # @return [Boolean] false: one of these has come
      def give_up(ignored, unless_come:)
        @meanings_of.each_key { |name| trap(name, ignored.include?(name) ? "IGNORE" : "SYSTEM_DEFAULT") }
        !come?(unless_come)
      end

      # The other program does not take the place of this one.
      def take_back = @meanings_of.each_key { |name| follow(name) }

      # In a child process, which has its own.
      def leave
        [@reader, @writer].each(&:close)
      end

      private

      def follow(name)
        count = 0
        trap(name) { push(@meanings_of[name]) unless @once.include?(name) && (count += 1) > 1 }
      end

      def next_one(timeout) = (@meanings[@reader.getbyte] if @reader.wait_readable(timeout))
    end
  end
end
