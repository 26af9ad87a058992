# frozen_string_literal: true

module Heddle
  class Dump
    # Describes one wait in words.
    class Description
      # Words for the events that are awaited on an IO.
      EVENTS = {
        IO::READABLE => "to read from", IO::WRITABLE => "to write to",
        IO::READABLE | IO::WRITABLE => "to read from or write to", IO::PRIORITY => "for urgent data of"
      }.freeze

      # @param wait [Hash] one entry of Scheduler#waits
      # @param holder [String, nil] the holder of the lock for which it waits
      def initialize(wait, holder = nil)
        @wait = wait
        @holder = holder
      end

      # @return [String]
      def text
        return "ready to run" if @wait[:state] == :ready

        left = @wait[:left] && format(", %.3f s left", @wait[:left])
        "waits #{reason}, since #{format("%.3f", @wait[:since])} s#{left}"
      end

      private

      def reason
        case @wait[:kind]
        when :io then ios.first.to_s
        when :select then "in IO.select of #{ios.size}: #{ios.join(", ")}"
        when :sleep then "in sleep"
        when :process then "for #{process}"
        when :worker then "for a worker thread: #{work}"
        when :thread then "for the end of #{subject.inspect}"
        else "for #{blocker}"
        end
      end

      def subject = @wait[:subject]

      def ios
        @wait[:ios].map { |io, events| "#{EVENTS.fetch(events, "for events #{events} of")} #{IOName.of(io)}" }
      end

      def process
        subject.positive? ? "the end of process #{subject}" : "the end of a child (#{subject})"
      end

      def work
        case subject
        when String then "the address of #{subject}"
        when IO then "a transfer of #{IOName.of(subject)}"
        else "an operation"
        end
      end

      def blocker
        case subject
        when Completion then subject.name
        when Thread::ConditionVariable then "a signal of #{subject.inspect}"
        when Thread::SizedQueue then "#{subject.size < subject.max ? "an item of" : "a place in"} #{queue}"
        when Thread::Queue then "an item of #{queue}"
        when Thread::Mutex then "the lock of #{subject.inspect}#{", which #{@holder}" if @holder}"
        when Thread.singleton_class then "a Thread#wakeup"
        when nil then "an unblock"
        else subject.inspect
        end
      end

      def queue = "#{subject.inspect} (#{subject.num_waiting} waiting)"
    end
  end
end
