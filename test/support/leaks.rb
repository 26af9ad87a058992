# frozen_string_literal: true

require "timeout"
require_relative "free_port"

module TestSupport
  # What a test left behind: descriptors, child processes, threads.
  module Leaks
    GRACE = 20.0
    # Threads that live as long as the process: Ruby's Timeout, and Heddle's own workers (named "heddle ...").
    LASTING = /\A(?:Timeout stdlib thread|heddle\b)/

    Snapshot = Struct.new(:descriptors, :children, :threads)

    class << self
      def snapshot
        give_back_backend
        Snapshot.new(descriptors, children, threads)
      end

      # nil, or what is there now and was not before. Gives things a moment to end, but runs no GC: what only the
      # GC would close has leaked.
      def left_since(before)
        give_back_backend
        deadline = now + GRACE
        loop do
          left = describe(difference(before))
          return left if left.nil? || now > deadline

          sleep(0.01)
        end
      end

      # Ends left children and threads, so that the next test starts clean.
      def clean(before)
        left = difference(before)
        left.threads.each { |thread| thread.kill.join(GRACE) }
        left.children.each do |pid|
          Process.kill(:KILL, pid)
          Process.wait(pid)
        rescue SystemCallError
          nil
        end
      end

      # Open descriptors as {number => what it is}. Only Linux says it.
      def descriptors
        return {} unless File.directory?("/proc/self/fd")

        folder = Dir.new("/proc/self/fd")
        folder.each_child.filter_map do |number|
          next if Integer(number) == folder.fileno

          [Integer(number), File.readlink("/proc/self/fd/#{number}")]
        rescue Errno::ENOENT
          nil
        end.to_h
      ensure
        folder&.close
      end

      # Process ids of the children of this process.
      def children
        Dir.glob("/proc/self/task/*/children").flat_map { |file| File.read(file).split.map(&:to_i) }.sort
      rescue Errno::ENOENT
        retry # a thread ended between the two calls
      end

      # What Heddle.run leaves to its thread for the next one has not leaked: a scheduler that is set by hand takes it,
      # and closes it.
      def give_back_backend
        return if Fiber.scheduler || !defined?(Heddle) # (the reference run has no Heddle)

        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { nil }
        Fiber.set_scheduler(nil)
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def threads
        Thread.list.reject { |thread| Watchdog.thread?(thread) || LASTING.match?(thread.name) }
      end

      def difference(before)
        open = descriptors.reject { |number, what| before.descriptors[number] == what || FreePort.keeps?(number) }
        Snapshot.new(open, children - before.children, threads - before.threads)
      end

      def describe(left)
        text = []
        text << "descriptors #{left.descriptors}" unless left.descriptors.empty?
        text << "children #{left.children}" unless left.children.empty?
        left.threads.each { |thread| text << "#{thread.inspect} #{thread.backtrace&.first(5)}" }
        text.join(", ") unless text.empty?
      end
    end

    # Ruby opens descriptors of its own with the first thread and the first timed wait; the first test must not pay.
    Thread.new { sleep(0.001) }.join
    Timeout.timeout(1) { nil }
    Process.wait(spawn("true"))
  end
end
