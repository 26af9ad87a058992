# frozen_string_literal: true

require "stringio"
require "tmpdir"
require_relative "actor"
Dir.glob(File.join(__dir__, "actors/*.rb")).each { |file| require file }

module Fuzz
  # Plays rounds: each is a scheduler with some actors, known by its seed alone, after which nothing may be left.
  class Rounds
    # Ends a round from outside.
    class Abort < Exception; end # rubocop:disable Lint/InheritException

    ENTRIES = %i[run run run_in_thread set_scheduler].freeze

    # What plays beside signals. A handler may come between a read and its return, and whoever is killed there has lost
    # what was read, as a thread has.
    CALM = %w[signals raises busy sleeps scopes joins conditions].freeze
    private_constant :CALM

    # What a backend consists of.
    BACKENDS = /\Aanon_inode:\[(?:eventpoll|eventfd|io_uring)\]\z/
    # Seconds in which a worker of a file ends its call.
    WORKER_PATIENCE = 1
    # Seconds of a time slice.
    SLICES = 0.0002..0.003
    private_constant :BACKENDS, :WORKER_PATIENCE, :SLICES

    # @param limit [Integer] seconds that a round may take
    # @param size [Integer] the most actors of a round
    # @param slices [Float] the part of the rounds with time slices, from 0 to 1
    def initialize(backend:, limit: 300, size: 12, slow: 1.0, actors: Actor.all, abort: true, slices: 0, out: $stdout)
      @backend = backend
      @limit = limit
      @size = size
      @slow = slow
      @actors = actors
      @abort = abort
      @slices = slices
      @out = out
    end

    # Plays the round of this seed.
    # @raise [Failure]
    def play(seed)
      TestSupport::Watchdog.watch("the start", 10) { nil } # it opens a pipe
      before = TestSupport::Leaks.snapshot
      ios = open_ios
      TestSupport::Watchdog.watch("fuzz #{@backend} --seed #{seed} --rounds 1", @limit) { with_context(seed) }
      tidy(before, ios) if @aborted
      left = TestSupport::Leaks.left_since(before)
      raise Failure, "left behind: #{left}\n#{told}" if left
    end

    # @return [Array<String>] the names of the actors of the last round
    def cast = @cast.map { |actor| actor.class.label }

    # @return [String] what the round of this seed consists of
    def plan(seed)
      prepare(seed)
      "#{title}: #{cast.zip(@delays).map { |name, delay| "#{name} after #{delay.round(4)} s" }.join(", ")}"
    end

    private

    def prepare(seed)
      rng = Random.new(seed)
      @entry = ENTRIES[rng.rand(ENTRIES.size)]
      @aborted = @abort && rng.rand < 0.1 ? rng.rand * 0.2 : nil
      @cast = Array.new(rng.rand(1..@size)) { @actors[rng.rand(@actors.size)].new(rng.rand(2**32), slow: @slow) }
      @cast.select! { |actor| CALM.include?(actor.class.label) } if @cast.any?(Signals)
      @delays = @cast.map { rng.rand < 0.5 ? 0 : rng.rand * 0.01 }
      @slice_rng = rng.rand < @slices ? Random.new(rng.rand(2**32)) : nil
    end

    def title
      "#{@entry}#{", time slices" if @slice_rng}#{", aborted after #{@aborted.round(4)} s" if @aborted}"
    end

    # A round that was ended may have raised in an actor between making a thread, an IO or a child, and keeping it. And
    # Thread#kill ends Ruby itself between accept(2) and the socket object, with plain threads too.
    def tidy(before, ios)
      TestSupport::Leaks.clean(before)
      (open_ios - ios).each { |io| close(io) }
      nobodys_descriptors(before).each { |fd| IO.for_fd(fd).close }
    end

    # What a thread of Heddle's may still own is left alone: it would close the number once more, which may be that of
    # another IO by then. A backend stays with its thread for a while, and a worker has a copy of the descriptor of its
    # file until it is done.
    def nobodys_descriptors(before)
      left = TestSupport::Leaks.descriptors.to_a - before.descriptors.to_a
      left.reject! { |_, what| what.match?(BACKENDS) }
      return [] if left.empty?

      sleep(WORKER_PATIENCE)
      (left & TestSupport::Leaks.descriptors.to_a).map(&:first)
    end

    def close(io)
      number = io.fileno
      io.close
    rescue IOError
      nil # it was closed with another one, or by a thread that was about to
    rescue Errno::EBADF
      raise Failure, "#{io.inspect} was open, and its descriptor #{number} was not\n#{told}"
    end

    def open_ios
      ObjectSpace.each_object(IO).select do |io|
        !io.closed? && io.autoclose?
      rescue IOError
        false # it was never opened
      end
    end

    def with_context(seed)
      prepare(seed)
      Heddle.on_error { |error, task| note_report(error, task) }
      aborting(@aborted) { __send__(:"by_#{@entry}") { scene } }
    rescue Exception => e
      raise if e.is_a?(SignalException) || e.is_a?(SystemExit)
      # An actor that is ended closes what its tasks still read and write.
      return if @aborted && !e.message.match?(/hangs|does not end/)

      cause = "\n#{e.cause.full_message(highlight: false)}" if e.cause
      raise Failure, "#{e.class}: #{e.message}\n#{e.backtrace.first(12).join("\n")}#{cause}\n#{told}"
    end

    # In a round that was ended, the cancel may take the place of a failure. A cancel carries no error, so Heddle
    # reports it: here and in #with_context such failures count for nothing.
    def note_report(error, task)
      return if @aborted

      warn("reported: #{task.inspect}: #{error.full_message(highlight: false)}\n#{told}")
    end

    def told
      notes = @cast.map { |actor| "#{actor.class.label}: #{actor.notes.last(25).join("; ")}" }
      "entry #{title}\n  #{notes.join("\n  ")}"
    end

    def by_run(&) = Heddle.run(backend: @backend, &)

    def by_run_in_thread(&)
      in_thread { Heddle.run(backend: @backend, &) }
    end

    def by_set_scheduler
      error = nil
      in_thread do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: @backend))
        Fiber.schedule do
          Heddle.run { yield }
        rescue Exception => e
          error = e
        end
      end
      raise error if error
    end

    def in_thread
      thread = Thread.new { yield }
      thread.report_on_exception = false
      thread.value
    ensure
      thread.kill.join
    end

    # An exception from another thread in the midst of it: ensure blocks run, and that is all.
    def aborting(delay)
      return yield unless delay

      target = Thread.current
      lock = Thread::Mutex.new
      over = false
      killer = Thread.new do
        sleep(delay)
        lock.synchronize { target.raise(Abort, "from outside") unless over }
      end
      begin
        Thread.handle_interrupt(Abort => :immediate) { yield }
      rescue Abort
        nil
      ensure
        Thread.handle_interrupt(Abort => :never) { over = true }
        killer.join
      end
    end

    def scene
      scheduler = Fiber.scheduler
      slicer = Heddle.spawn(name: "slices") { slice_at_random(scheduler) } if @slice_rng
      tasks = @cast.zip(@delays).map do |actor, delay|
        Heddle.spawn(name: actor.class.label) do
          sleep(delay) if delay > 0
          actor.run
        end
      end
      tasks.each(&:wait)
      tasks.each(&:value)
      slicer&.cancel
      slicer&.wait
      check_idle(scheduler)
    end

    # Changes the length of the slices all the time, so that they end at ever other points of the code.
    def slice_at_random(scheduler)
      loop do
        scheduler.__send__(:slice_time, @slice_rng.rand(SLICES))
        sleep(@slice_rng.rand(0.0..0.01))
      end
    end

    # This fiber alone, and nothing in the kernel.
    def check_idle(scheduler)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 5
      loop do
        left = scheduler.__send__(:counts).slice(:armed, :timers, :queued).reject { |_, count| count.zero? }
        left[:fibers] = scheduler.size if scheduler.size.positive?
        left[:requests] = requests_in_kernel if requests_in_kernel.positive?
        return if left.empty?

        late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        raise Failure, "the scheduler holds #{left}\n#{StringIO.new.tap { |out| Heddle.dump(out) }.string}" if late

        sleep(0.005)
      end
    end

    # The requests of the rings of io_uring, but for the request that wakes the loop.
    def requests_in_kernel
      Dir.children("/proc/self/fdinfo").sum do |number|
        polls = File.read("/proc/self/fdinfo/#{number}")[/^PollList:\n((?:  .*\n)*)/, 1]
        polls ? [polls.lines.size - 1, 0].max : 0
      rescue SystemCallError
        0
      end
    end
  end
end
