# frozen_string_literal: true

require_relative "streams"

module Fuzz
  # Threads that tasks wait for, with and without a limit.
  class Joins < Actor
    private

    def perform
      steps(15).times do
        duration = moment
        worker = thread do
          sleep(duration)
          :value
        end
        limit = chance(0.5) ? moment : nil
        started = now
        state, result = raised_into(0.3, ANY) { limit ? worker.join(limit) : worker.value }
        took = now - started
        if state == :done
          check(result || took >= limit - 0.0001) { "join(#{limit}) gave up after #{took}" }
          check(limit || result == :value, "a wrong value")
        end
        check(worker.value == :value, "a wrong value")
      end
    end
  end

  # A thread with a scheduler of its own at the other end of a stream.
  class TwoSchedulers < StreamActor
    private

    def perform
      reader, writer = stream
      sent = bytes(100_000)
      backend = Fiber.scheduler.backend
      results = Thread::Queue.new
      other = thread do
        Heddle.run(backend: backend) do
          write_all(writer, sent)
          writer.close
          results << :written
          results.size
        end
      end
      same(read_all(reader), sent)
      check(results.pop == :written, "the other thread sent something else")
      other.join
    end
  end

  # A task that computes and waits for nothing: the others go on when it yields.
  class Busy < Actor
    private

    def perform
      turns = 0
      running = true
      other = go("turns") { (turns += 1) && sleep(0) while running }
      steps(20).times { number(10..2_000).times { |i| i.to_s } && sleep(0) }
      running = false
      finish(other)
      check(turns > 0, "no other task has run")
    end
  end

  # Tasks and their scopes: a failure cancels the siblings, whose ensure blocks run.
  class Scopes < Actor
    # What a task of this actor fails with.
    class Wanted < StandardError; end

    private

    def perform = steps(6).times { chance(0.5) ? failing : nested }

    def failing
      ended = 0
      count = number(1..6)
      begin
        Heddle.run do
          count.times { Heddle.spawn { forever { ended += 1 } } }
          Heddle.spawn { sleep(moment).then { raise Wanted } }
          sleep
        end
        raise Failure, "scopes: a failure was lost"
      rescue Wanted
        nil
      end
      check(ended == count) { "#{ended} of #{count} ensure blocks have run" }
    end

    def forever
      pick(-> { sleep }, -> { Thread::Queue.new.pop }, -> { new_pipe { |reader, _| reader.read } }).call
    ensure
      sleep(moment)
      yield
    end

    def nested
      sum = Heddle.run do
        tasks = Array.new(number(1..8)) { |i| Heddle.spawn { sleep(moment).then { Heddle.run { i } } } }
        tasks.sum(&:value) - tasks.size.times.sum
      end
      check(sum.zero?, "a wrong value")
    end
  end
end
