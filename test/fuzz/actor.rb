# frozen_string_literal: true

require "fileutils"
require "monitor"
require "socket"
require "stringio"
require "tempfile"
require "timeout"

module Fuzz
  # Something happened that must not.
  class Failure < StandardError; end

  # Ends a wait. No `rescue => e` swallows it, so one that is raised too late or twice ends the round.
  class Raised < Exception; end # rubocop:disable Lint/InheritException

  # The base of what a round is made of: a small model that does random things and knows what must come of them.
  # Each of its tasks has random numbers of its own, so that a seed makes the same plan however the tasks interleave.
  class Actor
    # The sources that may end a wait. Fiber#raise and Fiber#kill end an Enumerator's fiber, so it gets GENTLE ones.
    SOURCES = %i[raise kill cancel cancel_from_thread].freeze
    GENTLE = %i[cancel cancel_from_thread].freeze
    # On a busy machine a timeout may be raised in a task that computes just when a read has returned, as with Ruby's
    # threads: only where nothing can be lost.
    ANY = %i[timeout raise kill cancel cancel_from_thread].freeze
    PATIENCE = 100

    attr_reader :notes

    class << self
      # The classes that do something, without the classes that they share.
      def all = known.select { |actor| actor.private_method_defined?(:perform, false) }

      def known = @known ||= []

      def label = name[/\w+\z/].gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase

      def inherited(actor)
        super
        Actor.known << actor
      end
    end

    # @param slow [Numeric] factor of the sizes of data and the number of steps: below 1 where Ruby is slow
    def initialize(seed, slow: 1.0)
      @seed = seed
      @slow = slow
      @kept = []
      @notes = []
      @raised = 0
    end

    def run
      Fiber[:fuzz_rng] = Random.new(@seed)
      perform
    rescue StandardError => e
      note("failed with #{e.class}: #{e.message}") # the round may fail with another error: of a task that lost its IO
      raise
    ensure
      @kept.reverse_each { |thing| release(thing) }
    end

    private

    # -- choices ---------------------------------------------------------------------------------------------------

    def rng = Fiber[:fuzz_rng]

    def pick(*options) = options[rng.rand(options.size)]

    def chance(part) = rng.rand < part

    def number(range) = rng.rand(range)

    # @return [String] up to that many random bytes, and one at least
    def bytes(most) = rng.bytes(steps(most))

    def steps(count) = [(number(1..count) * @slow).round, 1].max

    # A moment, of those lengths in which things meet.
    def moment
      case number(0..6)
      when 0, 1 then 0
      when 2, 3 then number(0.0..0.0005)
      when 4, 5 then number(0.0..0.004)
      else number(0.0..0.02)
      end
    end

    def pause = (sleep(moment) unless chance(0.4))

    # -- what was done and what must be ----------------------------------------------------------------------------

    def note(text)
      @notes << text
      @notes.shift if @notes.size > 60
    end

    def check(right, text = nil)
      return if right

      raise Failure, "#{self.class.label}: #{text || yield}"
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # -- things that are ended with the actor ----------------------------------------------------------------------

    def keep(thing)
      @kept << thing
      thing
    end

    def release(thing)
      case thing
      when IO then thing.close
      when Thread then thing.kill.join
      when String then FileUtils.rm_rf(thing)
      when Integer then end_process(thing)
      else thing.to_io.close
      end
    rescue Errno::EBADF
      raise Failure, "#{self.class.label}: the descriptor of #{thing.inspect} was closed by somebody else"
    rescue IOError, SystemCallError
      nil
    end

    def end_process(pid)
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end

    # IO.pipe, and no exception comes between its two IOs: Ruby would close the descriptors and leave the first IO open,
    # whose close then closes a descriptor of somebody else.
    def new_pipe
      ends = Thread.handle_interrupt(Object => :never) { IO.pipe }
      return ends unless block_given?

      begin
        yield(*ends)
      ensure
        ends.each(&:close)
      end
    end

    # -- concurrent work -------------------------------------------------------------------------------------------

    # Runs the block beside this: in a task. What it raises fails the round.
    def go(name = nil)
      seed = rng.rand(2**32)
      Heddle.spawn(name: "#{self.class.label} #{name}") do
        Fiber[:fuzz_rng] = Random.new(seed)
        yield
      end
    end

    # A thread beside the scheduler's; what it raises is raised by #value and #join.
    def thread
      seed = rng.rand(2**32)
      keep(Thread.new do
        Thread.current.report_on_exception = false
        Fiber[:fuzz_rng] = Random.new(seed)
        yield
      end)
    end

    # Waits for tasks, which must end: nothing may hang.
    def finish(*tasks, within: PATIENCE)
      tasks.each do |task|
        next if task.wait(within / @slow)

        out = StringIO.new
        Heddle.dump(out)
        raise Failure, "#{self.class.label}: #{task.inspect} hangs\n#{out.string}"
      end
    end

    # Runs the block, a wait that loses nothing when an exception ends it, and perhaps raises one into it.
    # @return [Array] [:done, its value], or [:raised]
    def raised_into(part = 0.5, kinds = SOURCES, &)
      return [:done, yield] unless chance(part)

      kind = pick(*kinds)
      delay = moment
      id = "exception #{@raised += 1} of #{object_id}"
      note("#{kind} after #{delay.round(5)}")
      result = __send__(:"by_#{kind}", delay, id, &)
      note(result.first)
      result
    end

    def expect_raised(id)
      yield
    rescue Raised => e
      check(e.message == id) { "got #{e.message} in place of #{id}" }
      [:raised]
    end

    def by_timeout(delay, id)
      expect_raised(id) { [:done, Timeout.timeout([delay, 1e-6].max, Raised, id) { yield }] }
    end

    def by_raise(delay, id)
      fiber = Fiber.current
      waits = true
      raiser = go("raises") do
        sleep(delay)
        fiber.raise(Raised, id) if waits
      end
      # After a time slice the fiber would still count as waiting, although its wait has ended.
      result = Heddle.without_time_slices do
        expect_raised(id) { [:done, yield] }
      ensure
        waits = false
      end
      finish(raiser)
      result
    end

    def by_kill(delay, _id)
      result = [:raised]
      ended = Thread::Queue.new
      fiber = Fiber.schedule do
        result.replace([:done, yield])
      rescue Exception => e # also what was meant for the thread
        result.replace([:failed, e])
      ensure
        ended.close
      end
      sleep(delay)
      fiber.kill unless ended.closed?
      # What works on a thread of the pool cannot be left before it has ended.
      check(ended.closed? || (ended.pop(timeout: PATIENCE / @slow).nil? && ended.closed?), "a killed fiber goes on")
      outcome(result)
    end

    def by_cancel(delay, _id, &)
      result = [:raised]
      task = in_task(result, &)
      sleep(delay)
      task.cancel
      finish(task)
      outcome(result)
    end

    def by_cancel_from_thread(delay, _id, &)
      result = [:raised]
      task = in_task(result, &)
      canceller = thread do
        sleep(delay)
        task.cancel
      end
      finish(task)
      canceller.join
      outcome(result)
    end

    def in_task(result)
      go("to be cancelled") do
        result.replace([:done, yield])
      rescue StandardError => e
        result.replace([:failed, e])
      end
    end

    def outcome(result)
      raise result.last if result.first == :failed

      result
    end
  end
end
