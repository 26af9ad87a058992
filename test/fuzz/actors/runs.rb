# frozen_string_literal: true

require_relative "../actor"

module Fuzz
  # Heddle.run inside of a running one, in every kind of fiber, also where Ruby calls no scheduler: it returns what its
  # block returns or raises what fails in it, when all of its tasks have ended, and the others go on.
  class Runs < Actor
    # A task of a run has failed.
    class Mishap < StandardError; end

    # A run takes too long.
    class Late < Exception; end # rubocop:disable Lint/InheritException

    # Fiber#kill does not reach what another fiber has resumed.
    KINDS = (ANY - %i[kill]).freeze
    private_constant :KINDS

    private

    def perform
      @alive = Hash.new(0)
      workers = Array.new(number(1..4)) { go { steps(6).times { once(number(0..2)) } } }
      finish(*workers)
      check(@alive.values.all?(&:zero?)) { "tasks outlive their runs: #{@alive}" }
    end

    def once(depth)
      raised_into(0.4, KINDS) { somewhere { in_time { one_run(depth) } } }
      pause
    end

    # With a limit of its own, perhaps in a blocking fiber.
    def in_time(&)
      return yield unless chance(0.3)

      Timeout.timeout([moment, 1e-6].max, Late, &)
    rescue Late
      note("late")
    end

    # Calls the block in this fiber or in another: blocking ones are the last two kinds.
    def somewhere(kinds = 4)
      rng = self.rng
      inside = lambda do
        Fiber[:fuzz_rng] = rng
        yield
      end
      case number(0..kinds)
      when 0 then yield
      when 1 then Fiber.new(&inside).resume
      when 2 then Enumerator.new { |yielder| yielder << inside.call }.next
      when 3 then Fiber.blocking { yield }
      else Fiber.new(blocking: true, &inside).resume
      end
    end

    def one_run(depth)
      id = Object.new
      fails = chance(0.2)
      value = scope do
        Array.new(number(0..4)) { go { part(id, depth) } }
        somewhere(2) { fails_soon } if fails
        pause
        somewhere { go { moment_of(id) }.value }
      end
      check(!fails && value == id, "a run that failed has returned")
    rescue Mishap
      check(fails, "a run has failed without a reason")
    rescue Heddle::TimeoutError
      note("deadline")
    ensure
      check(@alive[id].zero?, "a run has returned before its tasks have ended")
    end

    def scope(&)
      chance(0.2) ? Heddle.scope(deadline: [moment, 1e-6].max, &) : Heddle.run(&)
    end

    def fails_soon
      go do
        pause
        raise Mishap
      end
      sleep
    end

    def part(id, depth)
      @alive[id] += 1
      begin
        pause
        shielded if chance(0.2)
        somewhere { one_run(depth - 1) } if depth.positive? && chance(0.3)
      ensure
        sleep(moment) if chance(0.2)
        clean_up(id) if chance(0.1)
      end
    ensure
      @alive[id] -= 1
    end

    # Only the failure of its run, or a deadline, ends a part: both have to wait for the end of a shield.
    def shielded
      whole = false
      Heddle.shield do
        pause
        Heddle.timeout(0.0005) { sleep } if chance(0.2)
        sleep(moment)
      rescue Heddle::TimeoutError
        nil
      ensure
        whole = $!.nil?
      end
    ensure
      check(whole, "a shield was pierced by #{$!.inspect}")
    end

    # What an ensure clause starts is not cancelled with the others, if an exception has come.
    def clean_up(id)
      cancelled = $!.is_a?(Heddle::Cancelled)
      whole = false
      @alive[id] += 1
      Heddle.spawn do
        sleep(0.005)
        whole = true
      ensure
        @alive[id] -= 1
      end.wait
      check(whole || !cancelled, "what cleans up was cancelled")
    end

    def moment_of(id)
      sleep(moment)
      id
    end
  end
end
