# frozen_string_literal: true

require_relative "../clock"

module Heddle
  class Server
    # Turns signals into events, in the order in which they came. A handler writes a byte to a pipe, which wakes a
    # select and a task. A Queue would not do: if the handler runs in the thread that waits in pop(timeout:), Ruby wakes
    # that thread only when the time is over. A child process has the same handlers until it sets its own. A signal that
    # comes to the child meanwhile is not an event of this process.
    #
    # @private
    class Signals
      # @param meanings [Hash{String => Symbol, nil}] the meaning of each signal; nil: the signal does nothing. It has a
      #   handler for that, because programs that are started from here would inherit IGNORE
      # @param once [Array<String>] signals that count only once
      # @param others [Array<Symbol>] further meanings that {#push} takes
      def initialize(meanings, once: [], others: [])
        @meanings_of = meanings
        @once = once
        @meanings = [*meanings.values, *others]
        @kept = [] # the events that came during a wait for something else
        @reader, @writer = IO.pipe
        @owner = ::Process.pid
        meanings.each_key { |name| follow(name) }
        early = defined?(EARLY_SIGNALS) ? EARLY_SIGNALS : []
        push(meanings[early.shift]) until early.empty?
      end

      # @return [IO] can be read when an event has come
      def to_io = @reader

      # @param timeout [Numeric, nil] seconds
      # @return [Symbol, nil] the meaning of the next event; nil: none has come in time
      def pop(timeout: nil)
        @kept.shift || next_one(timeout)
      end

      # Adds an event of the program itself.
      #
      # @param meaning [Symbol]
      def push(meaning)
        @writer.write_nonblock(@meanings.index(meaning).chr, exception: false) if meaning && ::Process.pid == @owner
      end

      # Waits for something else. Events that come meanwhile are kept for {#pop}.
      #
      # @param other [IO] the IO that must become readable
      # @param timeout [Numeric, nil] seconds
      # @param but [Array<Symbol>] the meanings that end the wait, also if they have come before
      # @return [Boolean] whether the IO has become readable
      def wait_for(other, timeout, but:)
        ends = timeout && (Clock.now + timeout)
        until come?(but)
          found, = IO.select([other, @reader], nil, nil, ends && [ends - Clock.now, 0].max)
          return !found.nil? unless found&.include?(@reader)
        end
        false
      end

      # @param meanings [Array<Symbol>]
      # @return [Boolean] whether one of these events waits for {#pop}
      def come?(meanings)
        @kept << next_one(0) while @reader.wait_readable(0)
        @kept.intersect?(meanings)
      end

      # Runs a block that may take long, and follows signals meanwhile.
      #
      # @param meanings [Array<Symbol>]
      # @param heard [#call] is called in a thread if one of these events comes
      def during(meanings, heard)
        ended, over = IO.pipe
        listener = Thread.new { wait_for(ended, nil, but: meanings) || heard.call }
        yield
      ensure
        over.close
        listener.join
        ended.close
      end

      # Gives up the handlers before another program takes the place of this one. Signals that ask for a restart are
      # ignored until that program has handlers of its own, because it begins with the newest files anyway. A signal
      # that stops the program ends it at once, by the kernel's default. With DEFAULT, Ruby would only note such a
      # signal, and forget it in the exec.
      #
      # @param ignored [Array<String>] the signals that ask for a restart
      # @param unless_come [Array<Symbol>] the events that stop the program
      # @return [Boolean] false: one of the events in unless_come has come
      def give_up(ignored, unless_come:)
        @meanings_of.each_key { |name| trap(name, ignored.include?(name) ? "IGNORE" : "SYSTEM_DEFAULT") }
        !come?(unless_come)
      end

      # Sets the handlers again, because the other program does not take the place of this one.
      def take_back = @meanings_of.each_key { |name| follow(name) }

      # Closes the pipe in a child process, which has its own.
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
