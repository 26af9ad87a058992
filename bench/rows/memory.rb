# frozen_string_literal: true

require "socket"
require "timeout"
require_relative "../support/memory"

module Bench
  # The bytes of memory that a task takes while it waits: the memory of the process once this number of tasks waits,
  # less the memory before, divided by their number. Each figure has the task in it, and what it waits with.
  module WaitingMemory
    TASKS = 10_000
    # A socket pair has two descriptors.
    PAIRS = [TASKS, (Process.getrlimit(:NOFILE).last - 200) / 2].min
    LONG = 3600

    class << self
      # The block waits until the queue is closed, or for what its number says.
      # @return [Array(Integer, Boolean)] how many tasks have ended well, and whether each took some memory
      def measure(peer, number, wake = nil)
        queue = Thread::Queue.new
        waiting = ended = 0
        before = Memory.used
        peer.run do
          number.times do |i|
            peer.spawn do
              waiting += 1
              yield(queue, i)
              ended += 1
            end
          end
          sleep(0.001) until waiting == number
          sleep(0.05) # until the last ones wait, too
          peer.found[:bytes] = Memory.per(number, before)
          queue.close
          wake&.call
        end
        [ended, peer.found[:bytes] > 1]
      end

      def row(name, title, tasks = TASKS, &)
        Bench.row("memory_#{name}", title, unit: "task", operations: tasks, fixed: true, figure: :bytes,
                                           warm_up: false, expect: ->(n) { [n, true] }, &)
      end
    end

    NOTE = "Bytes that are in memory (resident) after a collection. The kernel's own memory for threads and sockets " \
           "is not in it."

    Bench.group("memory", "Memory of a task that waits", note: NOTE) do
      row("queue", "for a queue") { |peer, n| measure(peer, n) { |queue, _| queue.pop } }

      row("timer", "for a queue, with a timeout") do |peer, n|
        measure(peer, n) { |queue, _| queue.pop(timeout: LONG) }
      end

      row("timeout", "for a queue in Timeout.timeout") do |peer, n|
        measure(peer, n) { |queue, _| Timeout.timeout(LONG) { queue.pop } }
      end

      row("read", "for a socket, in readpartial", PAIRS) do |peer, n|
        near, far = Array.new(n) { UNIXSocket.pair }.transpose
        measure(peer, n, -> { far.each { |socket| socket.write("x") } }) { |_, i| near[i].readpartial(1) }
      ensure
        [near, far].flatten.each(&:close)
      end
    end
  end
end
