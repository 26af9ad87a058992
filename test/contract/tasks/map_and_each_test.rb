# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.map and Heddle.each: a task for each item, a limited number at a time.
contract "Map" do
  heddle_only "Heddle.map"

  def test_values_come_in_the_order_of_the_items
    assert_equal([3, 1, 2], run { Heddle.map([3, 1, 2], limit: 3) { |x| sleep(x * 0.005) && x } })
    assert_equal((0...500).map { |x| x * 2 }, run { Heddle.map(0...500, limit: 7) { |x| sleep(0) && (x * 2) } })
    assert_equal([nil, nil], run { Heddle.map([1, 2]) { nil } })
    assert_empty(run { Heddle.map([], limit: 1) { flunk } })
  end

  def test_a_run_of_its_own
    assert_nil(Fiber.scheduler)
    assert_equal([2, 4], Heddle.map([1, 2], limit: 2) { |x| sleep(0.001) && (x * 2) })
    assert_equal([2, 4], Thread.new { Heddle.map([1, 2]) { |x| sleep(0.001) && (x * 2) } }.value)
    assert_nil(Fiber.scheduler)
  end

  def test_in_a_blocking_fiber
    value = run do
      other = Heddle.spawn { sleep(0.01) && :other }
      Fiber.blocking { Heddle.map([1, 2], limit: 1) { |x| other.value && x } }
    end

    assert_equal([1, 2], value)
  end

  def test_as_many_as_the_limit_run_at_the_same_time
    { 1 => 1, 4 => 4, 100 => 30, nil => 30 }.each do |limit, expected|
      running = most = 0
      run do
        Heddle.each(1..30, limit: limit) do
          most = [most, running += 1].max
          sleep(0.001)
          running -= 1
        end
      end

      assert_equal(expected, most, "limit: #{limit.inspect}")
    end
  end

  def test_the_input_is_not_read_further_ahead_than_the_limit
    read = ended = most = 0
    source = Enumerator.produce(1) { |x| x + 1 }.lazy.map { |x| (most = [most, (read += 1) - ended].max) && x }
    run do
      Heddle.each(source.take(50), limit: 7) do |x|
        sleep(0.001 * (x % 3))
        ended += 1
      end
    end

    assert_equal(50, read)
    assert_equal(7, most)
  end

  def test_queues_and_channels_are_not_read_further_ahead_than_the_limit
    [Thread::Queue.new, Thread::SizedQueue.new(30), Heddle::Channel.new(30)].each do |items|
      20.times { |i| items << (i == 7 ? nil : i) }
      items.close
      done = most = 0
      seen = run do
        Heddle.map(items, limit: 3) do |x|
          most = [most, 20 - items.size - done].max
          sleep(0.001)
          done += 1
          x
        end
      end

      assert_equal((0...20).map { |i| i == 7 ? nil : i }, seen)
      assert_equal(3, most)
    end
  end

  def test_a_nil_is_the_last_item_of_a_closed_queue
    items = Thread::Queue.new([1, nil, 2, nil]).close

    assert_equal([1, nil, 2, nil], run { Heddle.map(items, &:itself) })
    assert_empty(run { Heddle.map(Thread::Queue.new.close, &:itself) })
  end

  def test_an_item_stays_in_the_queue_until_a_task_can_start
    [Thread::Queue.new, Heddle::Channel.new(9)].each do |items|
      9.times { |i| items << i }
      gate = Thread::Queue.new
      run do
        work = Heddle.spawn { Heddle.each(items, limit: 4) { gate.pop } }
        sleep(0.001) until gate.num_waiting == 4
        sleep(0.001)

        assert_equal(5, items.size)
        items.close
        gate.close
        work.wait
      end

      assert_predicate(items, :empty?)
    end
  end

  def test_a_cancel_leaves_what_is_not_taken
    [Thread::Queue.new, Heddle::Channel.new(9)].each do |items|
      run do
        work = Heddle.spawn { Heddle.each(items, limit: 2) { nil } }
        2.times { |i| items << i }
        sleep(0.001) until items.empty?
        work.cancel
        3.times { |i| items << i }
        work.wait
      end

      assert_equal(3, items.size)
    end
  end

  def test_the_error_of_a_channel_ends_it
    items = Heddle::Channel.new(2)
    items << 1
    items.close(IOError.new("no more"))
    seen = []

    assert_raises(IOError) { run { Heddle.each(items) { |x| seen << x } } }
    assert_equal([1], seen)
  end

  def test_an_endless_input_ends_with_the_first_error
    run do
      [1, 5, nil].each do |limit|
        read = 0
        items = (1..).lazy.map { |x| (read += 1) && x }
        error = assert_raises(ZeroDivisionError) do
          Heddle.each(items, limit: limit) { |x| raise ZeroDivisionError if x == 20 }
        end

        assert_nil(error.cause)
        assert_equal(20, read)
      end
    end
  end

  def test_an_input_that_waits
    reader, writer = IO.pipe
    lines = run do
      Heddle.spawn do
        3.times { |i| sleep(0.005) && writer.puts(i) }
        writer.close
      end
      Heddle.map(reader.each_line.lazy.map(&:chomp), limit: 2) { |line| sleep(0.001) && line }
    end

    assert_equal(%w[0 1 2], lines)
  ensure
    [reader, writer].each(&:close)
  end

  def test_an_input_that_fails
    ended = []
    items = Enumerator.new { |to| (to << 1) && raise(IOError, "no more") }
    error = assert_raises(IOError) do
      run do
        Heddle.map(items, limit: 5) do |x|
          sleep
        ensure
          ended << x
        end
      end
    end

    assert_equal("no more", error.message)
    assert_equal([1], ended)
  end

  def test_the_error_of_the_block_is_raised_as_it_is
    own_kind = Class.new(Exception) # rubocop:disable Lint/InheritException
    [StopIteration, ClosedQueueError, SystemExit, Interrupt, Timeout::Error, Heddle::Cancelled, NotImplementedError,
     own_kind].each do |kind|
      [true, false].each do |waits|
        own = kind.new
        error = assert_raises(kind) do
          run do
            Heddle.map(1..3, limit: 3) do |x|
              sleep(0.001) if waits
              x == 2 ? raise(own) : sleep
            end
          end
        end

        assert_same(own, error)
        assert_nil(error.cause)
      end
    end
  end

  def test_the_cause_of_the_error_stays
    error = assert_raises(IOError) do
      run do
        Heddle.map([1], limit: 1) do
          sleep(0.001)
          raise ArgumentError, "first"
        rescue ArgumentError
          raise IOError, "then"
        end
      end
    end

    assert_equal("first", error.cause.message)
  end

  def test_the_others_have_ended_when_the_error_is_raised
    ended = []

    run do
      assert_raises(ZeroDivisionError) do
        Heddle.map(1..4, limit: 4) do |x|
          x == 3 ? sleep(0.005) && raise(ZeroDivisionError) : sleep
        ensure
          sleep(0.002)
          ended << x
        end
      end
    end

    assert_equal([1, 2, 3, 4], ended.sort)
  end

  def test_what_the_block_spawns_is_waited_for
    ended = 0
    run { Heddle.each(1..3, limit: 1) { Heddle.spawn { sleep(0.005) && (ended += 1) } } }

    assert_equal(3, ended)
  end

  def test_a_failure_of_what_the_block_spawns
    run do
      assert_raises(IOError) do
        Heddle.map(1..3, limit: 2) { Heddle.spawn { sleep(0.002) && raise(IOError) } && sleep }
      end
    end
  end

  def test_a_cancelled_task_in_the_block
    run do
      other = Heddle.spawn { sleep }
      other.cancel

      assert_raises(Heddle::Cancelled) { Heddle.map([1, 2], limit: 2) { |x| x == 1 ? other.value : sleep } }
      assert_equal([1], Heddle.map([1]) { |x| sleep(0) && x })
    end
  end

  def test_a_killed_fiber
    run do
      assert_raises(Heddle::Cancelled) { Heddle.map([1, 2]) { |x| x == 1 ? sleep : Fiber.current.kill } }
    end
  end

  def test_a_cancel_from_outside
    ended = []
    run do
      task = Heddle.spawn do
        Heddle.each(1.., limit: 3) do |x|
          sleep
        ensure
          sleep(0.001)
          ended << x
        end
      end
      task.cancel.wait

      assert_predicate(task, :cancelled?)
      assert_equal([1, 2, 3], ended)
    end
  end

  def test_a_timeout_from_outside
    assert_raises(Timeout::Error) { run { Timeout.timeout(0.01) { Heddle.each(1.., limit: 2) { sleep } } } }
    assert_raises(Timeout::Error) { run { Timeout.timeout(0.01) { Heddle.each(1.., limit: 2) { sleep(0.001) } } } }
  end

  # Objects of a program may say much of themselves, or fail.
  def test_a_wrong_argument_is_shown_in_one_short_line
    { "x\n" * 1000 => /unlike [xn\\]{80}\.{3}\z/, nil => /unlike #<Class:.{1,30}>\z/ }.each do |text, shown|
      items = Class.new { define_method(:inspect) { text || raise(IOError) } }.new

      assert_match(shown, assert_raises(ArgumentError) { Heddle.map(items) { flunk } }.message)
    end
  end

  once def test_a_wrong_argument_leads_to_the_line_of_the_program
    ["Heddle.map(nil) { 1 }", "Heddle.run { Heddle.map([1]) }", "Heddle::Task.new"].each do |code|
      said = run_ruby(code).err

      assert_match(/\A-e:1:in [^\n]+ \((ArgumentError|NoMethodError)\)\n(\tfrom -e:1:in [^\n]+\n)?\z/, said)
    end
  end

  def test_progress
    told = []
    run { Heddle.map([3, 1, 2], limit: 3, progress: ->(done) { told << done }) { |x| sleep(0.001 * x) } }
    Heddle.each(1..2, progress: ->(done) { told << done }) { nil }

    assert_equal([1, 2, 3, 1, 2], told)
    assert_raises(IOError) { run { Heddle.each([1], progress: ->(_) { raise IOError }) { nil } } }
    assert_match(/\Aprogress: /, assert_raises(ArgumentError) { Heddle.map([1], progress: 2) { flunk } }.message)
  end

  def test_each_returns_the_items
    items = { a: 1, b: 2 }
    seen = []

    assert_same(items, run { Heddle.each(items, limit: 1) { |key, value| seen << key << value } })
    assert_equal([:a, 1, :b, 2], seen)
  end

  def test_items_of_several_values
    assert_equal([["a", 0], ["b", 1]], run { Heddle.map(%w[a b].each_with_index) { |item| item } })
    assert_equal(%w[a0 b1], run { Heddle.map(%w[a b].each_with_index) { |text, index| "#{text}#{index}" } })
    assert_equal([[1, 2]], run { Heddle.map([[1, 2]], &:itself) })
  end

  def test_what_is_asked_wrongly
    [0, -1, 1.5, "2"].each do |limit|
      error = assert_raises(ArgumentError) { Heddle.map([1], limit: limit) { nil } }

      assert_match(/limit: .*#{Regexp.escape(limit.inspect)}/, error.message)
    end
    assert_match(/\Aitems: /, assert_raises(ArgumentError) { Heddle.each(1) { nil } }.message)
    assert_raises(ArgumentError) { Heddle.map([1]) }
    assert_raises(ArgumentError) { Heddle.each([1]) }
    assert_raises(ArgumentError) { Heddle.settle([1]) }
  end

  def test_many_items_keep_the_memory_flat
    grown = run do
      [2_000, 20_000].map do |count|
        GC.start
        before = ObjectSpace.count_objects[:TOTAL]
        most = 0
        Heddle.each(1..count, limit: 50) do |x|
          sleep(0)
          most = [most, Fiber.scheduler.tasks.size].max if (x % 500).zero?
        end

        assert_operator(most, :<=, 52)
        ObjectSpace.count_objects[:TOTAL] - before
      end
    end

    assert_operator(grown.last, :<, grown.first + 50_000)
  end
end
