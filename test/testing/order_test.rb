# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/testing"

# The order of the ready tasks under Heddle::Testing.run.
contract "TestingOrder" do
  heddle_only("plain threads have no seed")

  def virtually(seed, &) = Heddle::Testing.run(seed:, backend:, &)

  # @return [Array<Integer>] the order in which tasks run that become ready at the same time
  def order(seed)
    virtually(seed) do
      Heddle.scope do |scope|
        out = []
        10.times { |number| scope.spawn { sleep(1) && (out << number) } }
        sleep 2
        out
      end
    end
  end

  def test_the_seed_decides
    orders = Array.new(20) { |seed| order(seed) }

    assert_equal(orders, Array.new(20) { |seed| order(seed) })
    assert_equal([(0..9).to_a], orders.map(&:sort).uniq)
    assert_operator(orders.uniq.size, :>, 10)
  end

  def test_each_run_has_a_seed_of_its_own
    seeds = Array.new(5) { Heddle::Testing.run(backend:, &:seed) }

    assert_operator(seeds.uniq.size, :>, 1)
  end

  # The tasks that are ready form a round, so none of them runs twice before another one has run.
  def test_none_runs_twice_in_a_round
    turns = virtually(7) do
      turns = []
      tasks = Array.new(5) { |number| Heddle.spawn { 20.times { sleep(0) && (turns << number) } } }
      tasks.each(&:wait)
      turns
    end
    rounds = turns.each_slice(5).map(&:sort)

    assert_equal([[0, 1, 2, 3, 4]], rounds.uniq)
  end

  def test_queues_locks_and_yields_work_in_every_order
    20.times do |seed|
      sum = virtually(seed) do
        queue = Thread::SizedQueue.new(2)
        lock = Thread::Mutex.new
        sum = 0
        4.times { Heddle.spawn { 25.times { |number| queue << number } } }
        tasks = Array.new(4) { Heddle.spawn { 25.times { lock.synchronize { sum += queue.pop.tap { sleep 0 } } } } }
        tasks.each(&:wait)
        sum
      end

      assert_equal(4 * (0..24).sum, sum)
    end
  end

  def test_the_seed_is_printed_when_the_run_fails
    _, err = capture_io { assert_raises(IOError) { virtually(42) { raise IOError, "gone" } } }

    assert_equal("heddle: this order of tasks comes back with the seed 42\n", err)
    assert_equal(["", ""], capture_io { virtually(42) { nil } })
  end

  once def test_the_seed_is_printed_also_without_warnings
    outcome = run_ruby(<<~RUBY, options: ["-W0"])
      require "heddle/testing"
      Heddle::Testing.run(seed: 42) { exit(3) }
    RUBY

    assert_equal("heddle: this order of tasks comes back with the seed 42\n", outcome.err)
  end
end
