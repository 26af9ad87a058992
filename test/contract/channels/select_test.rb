# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.select: the first of several channels and tasks.
contract "SelectAmongChannels" do
  heddle_only "Heddle.select"

  def channels(count, capacity = 0) = Array.new(count) { Heddle::Channel.new(capacity) }

  # A task that is spawned runs until it waits, but its turn may be over before.
  def until_waiting(*channels)
    sleep(0.001) until channels.all? { |one| one.inspect.include?("waiting") }
  end

  def test_waits_for_the_first_item
    run do
      one, two = channels(2)
      Heddle.spawn { sleep(0.001) && (two << :item) }

      assert_equal([two, :item], Heddle.select(one, two))
      assert_nil(Heddle.select(one, two, timeout: 0.001))
      assert_nil(Heddle.select(one, timeout: 0))
    end
  end

  def test_takes_exactly_one_item
    run do
      sources = channels(3, 1).each { |one| one << 1 }
      Heddle.select(*sources)

      assert_equal([0, 1, 1], sources.map(&:size).sort)
      hands = channels(3)
      senders = hands.map { |one| Heddle.spawn { one << 1 }.tap { until_waiting(one) } }
      Heddle.select(*hands)
      sleep(0.001)

      assert_equal([false, false, true], senders.map(&:finished?).sort_by(&:to_s))
      senders.each(&:cancel)
    end
  end

  # It was woken by the one, and has taken the item of the other: the next receiver of the one is woken.
  def test_hands_on_what_it_does_not_take
    run do
      one, two = channels(2)
      chosen = Array.new(20) { Heddle.spawn { Heddle.select(one, two) } }
      simple = Array.new(20) { [one, two].map { |each| Heddle.spawn { each.pop } } }.flatten
      senders = Array.new(80) { |i| Heddle.spawn(background: true) { [one, two][i % 2] << i } }
      [*chosen, *simple].each(&:wait)
      sleep(0)

      assert_equal(60, senders.count(&:finished?))
    end
  end

  def test_a_cancelled_one_takes_nothing
    run do
      one, two = channels(2)
      task = Heddle.spawn { Heddle.select(one, two) }
      until_waiting(one, two)
      next_one = Heddle.spawn { one.pop }
      Heddle.spawn { one << :item }
      task.cancel

      assert_same(:item, next_one.value)
      assert_predicate(task.wait, :cancelled?)
      assert_equal(["#<Heddle::Channel 0 of 0>"] * 2, [one, two].map(&:inspect))
    end
  end

  def test_none_of_those_that_are_ready_is_preferred
    run do
      sources = channels(3, 300).each { |one| 300.times { one << 1 } }
      counts = Array.new(300) { Heddle.select(*sources).first }.tally

      assert_equal(3, counts.size)
      assert_operator(counts.values.min, :>, 30)
    end
  end

  def test_ends_and_errors
    run do
      one, two = channels(2)
      waiter = Heddle.spawn { Heddle.select(one, two) }
      until_waiting(one, two)
      one.close

      assert_equal([one, nil], waiter.value)
      assert_equal([one, nil], Heddle.select(one, two), "it is ready each time")
      two.close(IOError.new("down"))

      assert_raises(IOError) { Heddle.select(two) }
    end
  end

  def test_tasks
    run do
      one, = channels(1)
      gate = Thread::Queue.new
      task = Heddle.spawn { gate.pop }
      waiter = Heddle.spawn { Heddle.select(one, task) }

      assert_nil(Heddle.select(one, task, timeout: 0.001))
      gate << :value

      assert_equal([task, :value], waiter.value)
      assert_equal([task, :value], Heddle.select(one, task))
      failing = Heddle.spawn(isolated: true) { sleep(0.001) && raise(IOError, "down") }

      error = assert_raises(IOError) { Heddle.select(failing, one) }

      assert_same(failing.error, error)
    end
  end

  def test_in_threads
    one, two = channels(2)
    started = Thread::Queue.new
    chosen = Thread.new { (task = started.pop) && Array.new(3) { Heddle.select(one, two, task) } }
    run do
      gate = Thread::Queue.new
      started << (own = Heddle.spawn { gate.pop })
      one << 1
      two << 2
      gate << 3

      assert_equal([[one, 1], [two, 2], [own, 3]], chosen.value)
    end
    assert_nil(Thread.new { Heddle.select(one, timeout: 0.01) }.value)
  end

  # Two that want from each other's channels never take an item twice, nor lose one.
  def test_no_item_is_lost_or_doubled
    run do
      sources = channels(4)
      random = Random.new(1)
      taken = []
      waiters = []
      receive = lambda do
        Heddle.spawn(background: true) do
          while true # rubocop:disable Style/InfiniteLoop -- it is cancelled
            taken << Heddle.select(*sources.sample(3, random:))
          end
        end
      end
      8.times { waiters << receive.call }
      Heddle.each(1..400, limit: 20) do |n|
        sources[n % 4] << n
        waiters.sample(random:).cancel && (waiters << receive.call) if (n % 7).zero?
      end

      assert_equal((1..400).to_a, taken.map(&:last).sort)
    end
  end

  def test_arguments
    assert_match(/\Asources: /, assert_raises(ArgumentError) { Heddle.select }.message)
    assert_match(/\Asources: .*Queue/, assert_raises(ArgumentError) { Heddle.select(Queue.new) }.message)
    assert_match(/\Atimeout: /, assert_raises(ArgumentError) { Heddle.select(*channels(1), timeout: "1") }.message)
  end
end
