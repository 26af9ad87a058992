# frozen_string_literal: true

# bin/test: takes 5 s, 0.7 of a core

require_relative "../../test_helper"

# A small write to a socket goes out with those of the others, if many tasks are ready (on io_uring). Every byte goes
# out once and in order, whatever is raised in the task.
contract "WriteTogether", both_ways: true do
  rounds = 40
  sources = {
    "cancel" => ->(_, task) { task.cancel },
    "raise" => ->(fiber, _) { fiber.raise(StopIteration) if fiber.alive? },
    "kill" => ->(fiber, _) { fiber.kill if fiber.alive? },
    "thread" => ->(_, task) { Thread.new { task.cancel }.join }
  }

  # The block runs while others are ready all the time.
  def in_a_crowd
    over = false
    others = Array.new(12) { go { sleep(0) until over } }
    yield
  ensure
    over = true
    others.each(&:value)
  end

  def lines(range) = range.map { |i| "line #{i}\n" }.join

  # Are these the bytes of this number of writes, and at most a part of the next one?
  def written?(got, count)
    got.start_with?(lines(0...count)) && lines(0..count).start_with?(got)
  end

  on_streams "many tasks write and read", %w[tcp pipe] do |reader, writer|
    pairs = [[reader, writer]] + Array.new(15) { tcp_pair }
    in_a_crowd do
      writing = pairs.map { |_, to| go { 40.times { |i| to.write("line #{i}\n") } && to.close_write } }
      reading = pairs.map { |from, _| go { from.read } }

      assert_equal([lines(0...40)] * 16, reading.map(&:value))
      writing.each(&:value)
    end
  end

  on_streams "a write returns its size", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      [1, 4096, 4097, 60_000].each do |size|
        job = go { reader.read(size) }

        assert_equal(size, writer.write("x" * size))
        assert_equal(size, job.value.bytesize)
      end
    end
  end

  on_streams "what has no room waits for it", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      filled = fill(writer)
      job = go { writer.write("y" * 3000) }
      settle

      refute_predicate(job, :finished?)
      assert_equal("y" * 3000, reader.read(filled + 3000)[filled..])
      assert_equal(3000, job.value)
    end
  end

  on_streams "an IO timeout ends it", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      filled = fill(writer)
      writer.timeout = 0.02

      assert_raises(IO::TimeoutError) { writer.write("y" * 3000) }
      writer.timeout = nil
      reader.read(filled)
      writer.write("z")
      writer.close

      assert_match(/\Ay*z\z/, reader.read)
    end
  end

  on_streams "the peer is gone", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      reader.close
      assert_raises(Errno::EPIPE, Errno::ECONNRESET) { 100.times { writer.write("x") && sleep(0.001) } }
    end
  end

  on_streams "a string that is changed meanwhile goes out as it was", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      text = +"before"
      job = go { writer.write(text) }
      text.replace("after!")
      text.clear
      job.value

      assert_equal("before", reader.readpartial(100))
    end
  end

  on_streams "two tasks write whole lines to one socket", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      tasks = %w[a b].map { |name| go { 100.times { writer.write("#{name * 200}\n") } } }
      reading = go { reader.read }
      tasks.each(&:value)
      writer.close

      assert_equal({ "#{"a" * 200}\n" => 100, "#{"b" * 200}\n" => 100 }, reading.value.lines.tally)
    end
  end

  sources.each do |name, raise_into|
    on_streams "a write into which comes a #{name} is made once or not at all", %w[tcp pipe] do |reader, writer|
      heddle_only("exceptions are raised in tasks")
      random = Random.new(Minitest.seed)
      sent = +""
      in_a_crowd do
        (name == "thread" ? 5 : rounds).times do |i| # (the crowd lets a thread run every 0.1 s)
          returned = 0
          fiber = nil
          task = Heddle.spawn(isolated: true) do
            fiber = Fiber.current
            3.times { |k| writer.write("line #{i} #{k}\n") && returned += 1 }
          rescue StopIteration
            nil
          end
          random.rand(5).times { sleep(0) }
          raise_into.call(fiber, task) if fiber
          task.wait
          all = Array.new(3) { |k| "line #{i} #{k}\n" }
          # the write that got the exception may have gone out
          [returned, returned + 1].each { |count| all[count] = "(#{all[count]})?" if count == returned && all[count] }
          sent << all.first(returned + 1).join
        end
      end
      writer.close

      assert_match(/\A#{sent}\z/, reader.read)
    end
  end

  on_streams "a close", %w[tcp pipe] do |_reader, _writer|
    in_a_crowd do
      rounds.times do |i|
        from, to = tcp_pair
        returned = 0
        task = go do
          5.times { |k| to.write("line #{k}\n") && returned += 1 }
        rescue IOError
          nil
        end
        (i % 6).times { sleep(0) }
        to.close
        task.value
        got = from.read
        from.close

        assert(written?(got, returned), "#{returned} writes have returned, and got was #{got}")
      end
    end
  end

  on_streams "the child of a fork sends nothing", %w[tcp pipe] do |reader, writer|
    in_a_crowd do
      task = go { 20.times { |i| writer.write("line #{i}\n") } }
      10.times do
        sleep(0)
        Process.wait(fork { writer.close && exit!(0) })

        assert_predicate($?, :success?)
      end
      task.value
    end
    writer.close

    assert_equal(lines(0...20), reader.read)
  end

  def test_the_thread_dies
    heddle_only("the thread runs Heddle.run")
    5.times do |i|
      reader = writer = nil
      returned = 0
      reactor { reader, writer = tcp_pair }
      thread = Thread.new do
        Heddle.run do
          12.times { Heddle.spawn { loop { sleep(0) } } }
          500.times { writer.write("line #{returned}\n") && returned += 1 }
          sleep
        end
      end
      got = (+"") << reader.readpartial(100)
      sleep(0.001 * i)
      thread.kill.join
      writer.close
      got << reader.read

      assert(written?(got, returned), "#{returned} writes have returned, and got was #{got}")
    end
  end
end
