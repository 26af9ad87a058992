# frozen_string_literal: true

require_relative "../actor"

module Fuzz
  # Sleeps: never too short, and the next one is not shortened by what interrupted the last.
  class Sleeps < Actor
    LATE = 60.0

    private

    def perform
      finish(*Array.new(steps(20)) { go { steps(20).times { one_sleep } } })
    end

    def one_sleep
      duration = moment
      started = now
      state, = raised_into(0.4, ANY) { sleep(duration) }
      took = now - started
      check(state == :raised || took >= duration - 0.0001) { "sleep(#{duration}) took #{took}" }
      check(took < duration + 0.1 + (LATE / @slow)) { "sleep(#{duration}) took #{took}" }
    end
  end

  # Timeouts in timeouts: the right one comes, once, not before its time.
  class Timeouts < Actor
    private

    def perform
      finish(*Array.new(steps(10)) { go { steps(15).times { nested } } })
    end

    def nested
      outer, inner, work = Array.new(3) { moment + 1e-5 }
      started = now
      result = begin
        Timeout.timeout(outer, Raised, "outer") do
          Timeout.timeout(inner, Raised, "inner") { wait(work) }
        end
      rescue Raised => e
        e.message
      end
      took = now - started
      due = { "outer" => outer, "inner" => inner }.fetch(result, work)
      check(took >= due - 0.0001) { "#{result.inspect} after #{took} s of #{[outer, inner, work]}" }
      check(result != "outer" || outer <= inner || took >= inner, "the later timeout came")
      sleep(0) # nothing may come late
    end

    def wait(seconds)
      case pick(:sleep, :queue, :select, :condition)
      when :sleep then sleep(seconds)
      when :queue then check(Thread::Queue.new.pop(timeout: seconds).nil?, "an empty queue gave something")
      when :select then check(IO.select([], [], [], seconds).nil?, "IO.select of nothing gave something")
      else Thread::Mutex.new.then { |lock| lock.synchronize { lock.sleep(seconds) } }
      end
    end
  end

  # Waits with a limit of their own: nil or false only when it is over, IO#timeout with its exception.
  class Limits < Actor
    private

    def perform
      steps(30).times do
        reader, writer = new_pipe
        limit = moment
        text_after = chance(0.5) ? moment : nil
        writing = go("writes") { text_after && sleep(text_after) && writer.write("x") }
        wait(reader, limit, text_after)
        finish(writing)
      ensure
        reader&.close
        writer&.close
      end
    end

    def wait(reader, limit, text_after)
      started = now
      result = one_wait(reader, limit)
      took = now - started
      check(result || took >= limit - 0.0001) { "a limit of #{limit} s ended after #{took}" }
      check(!result || text_after, "a wait returned, and nothing has come")
    end

    def one_wait(reader, limit)
      case pick(:wait_readable, :select, :timeout)
      when :wait_readable then reader.wait_readable(limit)
      when :select then IO.select([reader], nil, nil, limit)
      else
        reader.timeout = limit
        begin
          reader.readpartial(1)
        rescue IO::TimeoutError
          nil
        end
      end
    end
  end
end
