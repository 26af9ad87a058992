# frozen_string_literal: true

require "test_helper"
require "support/slices_at_lines"

# Tasks use one object, and a time slice ends at every line of Heddle's own code in Ruby, although it is exempt, and at
# every line of the tasks. So nothing there relies on a switch that comes at a wait only.
contract "SlicesAtEveryLine" do
  heddle_only "its own objects"

  def sliced(files: %r{/lib/heddle(/|\.rb\z)}, &)
    Heddle.run(backend:) { TestSupport::SlicesAtLines.while_in(files:, &) }
  end

  def tasks(count, &) = Array.new(count) { |number| Heddle.spawn(number, &) }.map(&:value)

  def test_limiter
    inside = most = 0
    sliced do
      limiter = Heddle::Limiter.new(2)
      tasks(6) do
        4.times do
          limiter.acquire do
            most = [most, inside += 1].max
            sleep(0.002)
            inside -= 1
          end
        end
      end
    end

    assert_equal([2, 0], [most, inside])
  end

  def test_channel
    got = sliced do
      channel = Heddle::Channel.new(2)
      takers = Array.new(3) { Heddle.spawn { channel.to_a } }
      tasks(3) { |number| 5.times { |part| channel << [number, part] } }
      channel.close
      takers.map(&:value)
    end

    assert_equal([0, 1, 2].product((0...5).to_a), got.flatten(1).sort)
    got.each { |items| assert_equal([0, 1, 2].sum { |one| items.count { |number,| number == one } }, items.size) }
  end

  def test_pool
    made = 0
    twice = []
    used = Hash.new(0)
    sliced do
      pool = Heddle::Pool.new(size: 2) { "connection #{made += 1}" }
      tasks(6) do
        4.times do
          pool.with do |one|
            twice << one if (used[one] += 1) > 1
            sleep(0.002)
            used[one] -= 1
          end
        end
      end
      pool.close
    end

    assert_empty(twice)
    assert_equal(2, made)
  end

  def test_fiber_pool
    20.times do
      inside = most = 0
      order = []
      sliced do
        Heddle.scope do
          pool = Heddle::FiberPool.new(2)
          12.times do |number|
            pool.spawn do
              order << number
              most = [most, inside += 1].max
              sleep(rand(3) * 0.0003)
              inside -= 1
            end
          end
        end
      end

      assert_equal([2, 0, (0...12).to_a], [most, inside, order.sort])
    end
  end

  def test_map_and_pipeline
    doubled, sums = sliced do
      [Heddle.map(0...12, limit: 3) { |number| sleep(0.001) && (number * 2) },
       Heddle.pipeline(0...12).map(limit: 3) { |number| sleep(0.001) && (number + 1) }.to_a]
    end

    assert_equal((0...12).map { |number| number * 2 }, doubled)
    assert_equal((1..12).to_a, sums.sort)
  end

  def test_races
    results = sliced do
      Array.new(5) { Heddle.race(-> { sleep(0.001) && 1 }, -> { sleep(0) && 2 }, -> { sleep }) }
    end

    assert_empty(results - [1, 2])
  end

  # (Not in Heddle's own code: the end of a slice raises what is pending, and a scope does not expect that there.)
  def test_failures_cancel_the_others_once
    ended = []
    errors = sliced(files: nil) do
      Array.new(4) do |round|
        Heddle.scope do |scope|
          4.times { |number| scope.spawn { sleep } && scope.spawn { sleep_and_note(ended, [round, number]) } }
          2.times { |number| scope.spawn { sleep(0.001) && raise(ArgumentError, "task #{number}") } }
        end
      rescue ArgumentError => e
        e.message[/\Atask \d/]
      end
    end

    assert_empty(errors - ["task 0", "task 1"])
    assert_equal([0, 1, 2, 3].product([0, 1, 2, 3]), ended.sort)
  end

  def sleep_and_note(list, item)
    sleep
  ensure
    list << item
  end

  # (As above.)
  def test_deadlines_and_shields
    log = sliced(files: nil) do
      tasks(4) do |number|
        Heddle.move_on_after(0.005) do
          Heddle.shield { sleep(0.01) }
          sleep
        end
        Heddle.timeout(5) { sleep(0.001) && number }
      end
    end

    assert_equal([0, 1, 2, 3], log)
  end

  def test_rate_limiter_and_retry
    tries = Hash.new(0)
    results = sliced do
      limiter = Heddle::RateLimiter.new(1000, per: 1)
      tasks(4) do |number|
        Heddle.retry(on: IOError, attempts: 3, base: 0.001) do
          limiter.acquire
          (tries[number] += 1) < 3 ? raise(IOError, "again") : number
        end
      end
    end

    assert_equal([[0, 1, 2, 3], [3, 3, 3, 3]], [results, tries.values])
  end

  def test_offloaded_and_select
    values = sliced do
      tasks(3) { |number| Heddle.offload { number } } +
        [Heddle.select(Heddle.spawn { sleep(0.001) && :first }, Heddle::Channel.new(1)).last]
    end

    assert_equal([0, 1, 2, :first], values)
  end
end
