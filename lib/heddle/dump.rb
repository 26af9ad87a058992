# frozen_string_literal: true

require_relative "dump/description"

module Heddle
  using Internal

  # Shows as text what every fiber of every scheduler in this process is doing: see Heddle.dump.
  class Dump
    # @return [String] the text for all running schedulers of this process (of this Ractor)
    def self.text
      schedulers = running
      return "Heddle #{VERSION}: no scheduler runs in this process (pid #{Process.pid})\n" if schedulers.empty?

      schedulers.map { |scheduler| new(scheduler).text }.join("\n")
    end

    # Keeps the schedulers of this Ractor. ObjectSpace.each_object finds none of them once the process has had a second
    # Ractor.
    # @return [ObjectSpace::WeakMap]
    def self.schedulers
      Ractor.current[:heddle_schedulers] ||= ObjectSpace::WeakMap.new
    end

    # In the child of a fork the other threads have ended without closing their schedulers.
    # @return [Array<Scheduler>] the schedulers that run
    def self.running = schedulers.keys.reject(&:closed?).select { |scheduler| scheduler.thread&.alive? }

    # Makes a signal print the text on stderr; a handler that was there before is called, too. A name that is not a
    # signal, or is a signal that cannot be handled, only causes a warning, so that the program itself goes on.
    # @param name [String]
    def self.on_signal(name)
      before = nil
      handler = proc do
        Heddle.dump
        before.call if before.respond_to?(:call)
      end
      before = trap(name, &handler)
      @handler = handler unless before.respond_to?(:call)
    rescue ArgumentError, SystemCallError => e
      warn("heddle: HEDDLE_DUMP=#{name} has no effect: #{e.message}")
    end

    class << self
      # @return [Proc, nil] a handler of a signal that does nothing but print
      attr_reader :handler
    end

    # @param scheduler [Heddle::Scheduler]
    def initialize(scheduler)
      @scheduler = scheduler
      @waits = going_on(scheduler.waits)
      @timeouts = scheduler.timeouts
      @counts = scheduler.counts
      @by_root = @waits.group_by { |wait| wait[:root] }
      @tasks = @scheduler.tasks.filter_map { |task| [task.fiber, task] if task.fiber }.to_h
      @holders = @waits.flat_map { |wait| wait[:as_holders].map { |holder| [holder, wait[:root]] } }.to_h
    end

    # @param fibers [Array<Fiber>, nil] nil: all fibers
    # @return [String]
    def text(fibers = nil)
      fibers ||= @tasks.keys | @waits.map { |wait| wait[:root] }
      "#{header}\n#{fibers.map { |fiber| entry(fiber) }.join}"
    end

    private

    # A signal handler may wait in a fiber whose own wait is over by now: then the fiber is not ready to run.
    # @param waits [Array<Hash>] the outer one of a fiber comes before the inner one
    def going_on(waits)
      innermost = waits.to_h { |wait| [wait[:fiber], wait] }
      waits.select { |wait| wait[:state] == :parked || innermost[wait[:fiber]].equal?(wait) }
    end

    def title(fiber)
      task = @tasks[fiber]
      task ? "task #{task.name&.inspect || "without a name"}" : "fiber #{fiber.inspect}"
    end

    def header
      size = (@tasks.keys | @by_root.keys).size
      ready = @waits.count { |wait| wait[:state] == :ready }
      "Heddle #{VERSION} (#{@scheduler.backend}), Ruby #{RUBY_VERSION}, pid #{Process.pid}, " \
        "thread #{Wording.in_line(@scheduler.thread, :inspect)}:\n#{size} tasks and fibers, #{ready} ready, " \
        "#{@counts[:armed]} waits in the kernel, #{@counts[:timers]} timers, " \
        "#{@counts[:workers]} workers with #{@counts[:queued]} jobs waiting"
    end

    # A task may wait in a fiber that it has resumed: both backtraces are shown.
    def entry(fiber)
      waits = @by_root.fetch(fiber, [])
      states = waits.map { |wait| Wording.in_line(Description.new(wait, holder_of(wait)), :text) }
      states = ["running"] if waits.empty?
      "\n#{Wording.in_line(title(fiber))}: #{[*states, *limit(fiber)].join("; ")}\n#{backtraces(fiber, waits)}"
    end

    # Names the holder of the lock for which a fiber waits, and the place where the holder is; nil: none of the fibers
    # that wait holds it.
    def holder_of(wait)
      fiber = @holders[wait[:holder]] or return
      place = TaskFailure.clean(backtrace(fiber)).first&.[](/\A.*?:\d+/)
      "#{title(fiber)} holds#{", at #{place}" if place}"
    end

    def limit(fiber)
      left = @timeouts[fiber]
      format("in Timeout.timeout, %.3f s left", left) if left
    end

    def backtraces(fiber, waits)
      return indent(running_backtrace(fiber)) if waits.empty?

      fibers = [*waits.map { |wait| wait[:fiber] }, fiber].uniq
      fibers.map { |one| indent(backtrace(one)) }.join("      -- resumed by:\n")
    end

    def running_backtrace(fiber)
      @scheduler.thread.equal?(Thread.current) ? backtrace(fiber) : (@scheduler.thread.backtrace || [])
    end

    def backtrace(fiber)
      (fiber.backtrace || []).reject { |line| line.start_with?("#{__dir__}/dump") }
    end

    def indent(lines)
      lines.map { |line| "      #{Wording.in_line(line)}\n" }.join
    end
  end
  private_constant :Dump
end
