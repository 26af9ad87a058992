# frozen_string_literal: true

require_relative "registry"
require_relative "adapters"

module Bench
  # What an operation costs, as numbers that are the same on each machine, however busy it is: objects, calls of methods
  # and blocks, switches of fibers, looks at the kernel, and system calls. A row runs with few operations and with twice
  # as many, again and again: an operation costs what the second half of them adds. The smallest number counts, for
  # a moment in which something else happens only adds to it.
  module Counts
    FEW = 20
    # Of rows with several tasks, this many times for each.
    ROUNDS = 4
    # The system calls between two of these belong to a run.
    MARK = "/no/such/heddle/row"
    # Those of the memory and of threads differ from run to run.
    UNSTEADY = %w[mmap munmap mprotect mremap madvise brk futex clone clone3 rt_sigprocmask rt_sigreturn sched_yield
                  tgkill].freeze

    # Counts what the block does that a row measures.
    module Adapter
      attr_reader :counted

      def measure(&)
        calls = switches = 0
        tracer = TracePoint.new(:call, :c_call, :b_call) { calls += 1 }
        switch = TracePoint.new(:fiber_switch) { switches += 1 }
        changes = Counts.changes { tracer.enable { switch.enable(&) } }
        @counted = { **changes, calls:, switches: }
      end
    end

    class << self
      # What the block adds to what Ruby and Heddle count themselves. Marks it for strace.
      def changes
        File.exist?(MARK)
        polls = Heddle.stats.polls
        objects = GC.stat(:total_allocated_objects)
        yield
        objects = GC.stat(:total_allocated_objects) - objects
        File.exist?(MARK)
        { objects:, polls: Heddle.stats.polls - polls }
      end

      # In this process.
      # @return [Hash{Symbol => Float}] the counts for one operation, without system calls
      def of(row, adapter, tries)
        runs = numbers(row, tries).map { |number| run(row, adapter, number) }
        runs.first.to_h { |name, _| [name, per_operation(row, runs.map { |counts| counts[name] })] }
      end

      # The lines of `strace -f` for a process that has called #of for each of the rows, one after the other.
      # @return [Array<Float>] the system calls for one operation of each row
      def system_calls(rows, tries, lines)
        runs = between_marks(lines).each_slice(numbers(rows.first, tries).size)
        rows.zip(runs).map { |row, counts| per_operation(row, counts) }
      end

      private

      # How many operations each run has. The first one is for what is done once.
      def numbers(row, tries) = [few(row), *([few(row), 2 * few(row)] * tries)]

      def few(row) = row.multiple == 1 ? FEW : row.multiple * ROUNDS

      # @param counts [Array<Integer>] of each run
      def per_operation(row, counts)
        counts.drop(1).each_slice(2).map { |once, twice| (twice - once).fdiv(few(row)) }.min
      end

      def run(row, adapter, operations)
        result = row.work.call(adapter, operations)
        raise "#{row.name}: #{result.inspect} in place of #{operations}" unless result == row.expect.call(operations)

        adapter.counted
      end

      # @return [Array<Integer>] the numbers of system calls of the marking thread between each two marks
      def between_marks(lines)
        thread = nil
        lines.each_with_object([]) do |line, counts|
          pid, call = line.split(" ", 2)
          if call.include?(MARK)
            thread = thread ? nil : pid
            counts << 0 if thread
          elsif pid == thread && (name = call[/\A(\w+)\(/, 1]) && !UNSTEADY.include?(name)
            counts[-1] += 1
          end
        end
      end
    end
  end
end
