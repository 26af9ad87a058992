# frozen_string_literal: true

require_relative "streams"

module Fuzz
  # Child processes, and waits for them that are interrupted: the status is theirs.
  class Children < StreamActor
    private

    def perform = steps(4).times { pick(:waited, :system, :popen, :backticks).then { |way| __send__(way) } }

    def waited
      code = number(0..100)
      pid = keep(Process.spawn("sleep #{moment.round(4)}; exit #{code}"))
      loop do
        state, status = raised_into(0.6) { Process.wait2(pid).last }
        next if state == :raised && !ended?(pid)

        @kept.delete(pid)
        check(state == :raised || status.exitstatus == code, "a wrong status")
        return
      end
    end

    # An interrupted wait may have reaped the child already.
    def ended?(pid)
      Process.kill(0, pid)
      false
    rescue Errno::ESRCH
      true
    end

    def system
      code = number(0..100)
      check(Kernel.system("exit #{code}") == code.zero?, "system told something else")
    end

    def backticks
      number = number(0..100)
      check(`echo #{number}` == "#{number}\n", "backticks gave something else")
    end

    def popen
      sent = bytes(100_000)
      IO.popen("cat", "r+b") do |cat|
        writing = go("writes to cat") do
          cat.write(sent) # not write_all: Ruby's wait_writable looks at the reading half
          cat.close_write
        end
        same(read_all(cat), sent)
        finish(writing)
      end
    end
  end

  # Forks: the child starts clean and may start a Heddle of its own; the parent is undisturbed.
  class Forks < StreamActor
    private

    def perform
      steps(3).times do
        reader, writer = pipe
        waiting = go("waits meanwhile") { sleep(moment) }
        seed = rng.rand(2**32)
        pid = keep(fork { exit!(child(writer, seed) ? 0 : 1) })
        writer.close
        check(reader.read == "child", "the child has not written")
        status = Process.wait2(pid).last
        @kept.delete(pid)
        check(status.success?) { "the child ended with #{status}" }
        finish(waiting)
      end
    end

    def child(writer, seed)
      Fiber[:fuzz_rng] = Random.new(seed)
      return false if Fiber.scheduler

      chance(0.5) ? sleep(moment) : Heddle.run { child_run }
      writer.write("child")
      true
    rescue Exception => e
      $stderr.write("the child: #{e.full_message}\n")
      false
    end

    def child_run
      inside, outside = new_pipe
      Heddle.spawn { outside.write("x").then { outside.close } }
      raise Failure, "the child's pipe" unless inside.read == "x"
    ensure
      inside&.close
    end
  end
end
