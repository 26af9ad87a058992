# frozen_string_literal: true

require_relative "../actor"

module Fuzz
  # Signals that come at any moment, with handlers that wait, start tasks, wake and cancel others.
  class Signals < Actor
    # (A handler that interrupts Queue#pop at its first step must not call that itself: Ruby takes it for a recursion of
    # its `timeout == 0`. So these wait in other ways.)
    ACTIONS = %i[sleeps spawns schedules asks cancels closes times_out resumes].freeze

    @requests = Thread::Queue.new

    class << self
      # The handler of the process: it does what was asked for, whoever asked. Not in another actor's task: if that is
      # if one is raised while the handler waits, it has lost what it had just read.
      def handle
        foreign = Fiber[:fuzz_rng] && !Fiber[:fuzz_signals]
        return Thread.new { sleep(0.001) && Process.kill(:USR2, Process.pid) } if foreign

        @requests.pop(true).call until @requests.empty?
      rescue ThreadError
        nil # another handler took it
      end

      def request(&action)
        @handled ||= trap(:USR2) { handle }
        @requests << action
      end
    end

    private

    def perform
      Fiber[:fuzz_signals] = true
      steps(8).times do
        answers = Thread::Queue.new
        action = plan(pick(*ACTIONS))
        Signals.request { answer(answers, &action) }
        signal(pick(:now, :soon, :computing))
        answer = answers.pop(timeout: PATIENCE / @slow) || "hangs, or did not do its work"
        check(answer == true) { "a signal handler: #{answer}" }
      end
    end

    # An exception for the task that it has interrupted is raised in a handler that waits.
    def answer(answers)
      answer = true
      answer = yield if Fiber.current_scheduler
    rescue StandardError => e
      answer = e.full_message(highlight: false)
    ensure
      answers << answer
    end

    # What a handler does; with its random numbers, for it runs in a fiber that has none.
    def plan(name)
      delay = moment
      -> { __send__(name, delay) }
    end

    def signal(how)
      return Process.kill(:USR2, Process.pid) if how == :now

      delay = moment
      sender = thread { sleep(delay) && Process.kill(:USR2, Process.pid) }
      until_now = now + (how == :computing ? delay : 0)
      9.times { |i| i.to_s } while now < until_now
      sender.join
    end

    def wait_for(task) = (sleep(0.0002) until task.finished?)

    def sleeps(delay) = sleep(delay) && true

    def spawns(delay)
      ran = false
      wait_for(Heddle.spawn { sleep(delay) && (ran = true) })
      ran
    end

    def schedules(delay)
      ran = false
      Fiber.schedule { sleep(delay) && (ran = true) }
      sleep(0.0002) until ran
      true
    end

    def asks(delay)
      new_pipe do |reader, writer|
        task = Heddle.spawn { sleep(delay) && writer.write("!") }
        (reader.read(1) == "!").tap { wait_for(task) }
      ensure
        task&.cancel
      end
    end

    def cancels(delay)
      task = Heddle.spawn { sleep }
      sleep(delay)
      wait_for(task.cancel)
      task.cancelled?
    ensure
      task&.cancel
    end

    def closes(delay)
      reader, writer = new_pipe
      task = Heddle.spawn { reader.read rescue :closed } # rubocop:disable Style/RescueModifier
      sleep(delay)
      reader.close
      wait_for(task)
      task.value == :closed
    ensure # an exception for the task that the handler has interrupted is raised here
      [reader, writer].compact.each(&:close)
    end

    def times_out(delay)
      Timeout.timeout([delay, 1e-6].max) { sleep }
    rescue Timeout::Error
      true
    end

    def resumes(delay) = Enumerator.new { |yielder| sleep(delay) && (yielder << true) }.next
  end

  # Thread#raise into a thread whose fibers wait and compute: its Heddle.run ends with that exception, and the ensure
  # blocks of all have run.
  class Raises < Actor
    # The objects that are sent.
    class Wanted < StandardError; end

    private

    def perform
      steps(3).times do
        @ended = 0
        count = number(1..6)
        ready = Thread::Queue.new
        victim = victim(count, Fiber.scheduler.backend, ready)
        ready.pop
        sleep(moment)
        victim.raise(sent = Wanted.new("sent"))
        check(end_of(victim).equal?(sent), "what was sent did not arrive")
        check(@ended == count) { "#{@ended} of #{count} ensure blocks have run" }
      end
    end

    def victim(count, backend, ready)
      thread do
        Heddle.run(backend: backend) do
          count.times { chance(0.5) ? Heddle.spawn { forever } : Fiber.schedule { forever } }
          ready << true
          sleep
        end
      rescue Wanted => e
        e
      end
    end

    def forever
      work = Fiber[:fuzz_rng].rand(4)
      loop { work.zero? ? compute : wait(work) }
    ensure
      @ended += 1
    end

    def compute
      99.times { |i| i.to_s }
      Thread.pass
      sleep(0)
    end

    def wait(work)
      case work
      when 1 then sleep
      when 2 then Thread::Queue.new.pop
      else new_pipe { |reader, _| reader.read }
      end
    end

    def end_of(victim)
      check(victim.join(PATIENCE / @slow), "a thread hangs")
      victim.value
    end
  end
end
