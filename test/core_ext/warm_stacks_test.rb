# frozen_string_literal: true

# bin/test: takes 15 s, 0.7 of a core

require_relative "../test_helper"

# The memory of ended fibers' stacks is kept for the next fibers. It is given back when no fiber has needed it for a
# while.
class WarmStacksTest < HeddleTest
  include TestSupport::Subprocess

  OWN = { "HEDDLE_SAFE" => nil, "HEDDLE_WITHOUT" => nil, "RUBY_SHARED_FIBER_POOL_FREE_STACKS" => nil }.freeze
  TOOLS = <<~'RUBY'
    # KB that this process has told the kernel it does not need.
    def lazy = Integer(File.read("/proc/self/smaps_rollup")[/^LazyFree:\s+(\d+)/, 1])
    def memory = Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]) / 1024

    def start(count)
      tasks = Array.new(count) { Heddle.spawn { sleep } }
      sleep(0)
      tasks.each(&:cancel)
    end

    def wait_for_fall(from, least)
      60.times { GC.start; break if from - memory >= least; sleep(0.5) }
      p from - memory >= least
    end
  RUBY
  ROUNDS = <<~RUBY
    Heddle.run do
      4.times { start(500) && sleep(0) && GC.start }
      p lazy
    end
  RUBY

  def setup
    super
    skip("the kernel does not say it") unless File.read("/proc/self/smaps_rollup").include?("LazyFree:")
    state = Heddle.patches.find { |patch| patch.name == :warm_stacks }.state
    skip("not with this build of Ruby") if state == :not_possible
  end

  def output(script, env = {})
    outcome = run_ruby(TOOLS + script, env: OWN.merge(env))

    assert_equal("", outcome.err)
    outcome.out
  end

  # Each stack has two pages at least.
  def test_stacks_stay_warm
    assert_operator(Integer(output(ROUNDS)), :<, 500)
  end

  def test_switched_off_they_do_not
    [{ "HEDDLE_WITHOUT" => "warm_stacks" }, { "HEDDLE_SAFE" => "1" }].each do |env|
      assert_operator(Integer(output(ROUNDS, env)), :>, 2000, env)
    end
  end

  def test_the_register_says_so
    state = "p Heddle.patches.find { |patch| patch.name == :warm_stacks }.state"

    assert_equal(":active\n", output(state))
    assert_equal(":switched_off\n", output(state, "HEDDLE_SAFE" => "1"))
    assert_equal(":not_possible\n", output(state, "RUBY_SHARED_FIBER_POOL_FREE_STACKS" => "0"), "the user's own choice")
  end

  # 4,000 stacks of at least two pages each, without the page in which Ruby keeps the list.
  def test_memory_is_given_back_while_a_run_waits
    assert_equal("true\n", output(<<~RUBY))
      Heddle.run do
        start(4000)
        wait_for_fall(memory, 20)
      end
    RUBY
  end

  def test_memory_is_given_back_while_a_run_is_busy
    assert_equal("true\n", output(<<~RUBY))
      Heddle.run do
        start(4000)
        Heddle.spawn(background: true) { loop { sleep(0.001) } }
        wait_for_fall(memory, 20)
      end
    RUBY
  end

  def test_memory_is_given_back_after_the_last_run
    assert_equal("true\ntrue\n", output(<<~RUBY))
      Heddle.run { start(4000) && sleep(0) && GC.start }
      wait_for_fall(memory, 20)
      # the thread that gave it back ends
      60.times { break if Thread.list.size == 1; sleep(0.5) }
      p Thread.list.size == 1
    RUBY
  end

  def test_in_the_child_of_a_fork
    assert_equal("true\ntrue\n", output(<<~RUBY))
      Heddle.run { start(4000) && sleep(0) && GC.start }
      Process.wait(fork do
        Heddle.run { start(4000) && sleep(0) && GC.start }
        wait_for_fall(memory, 20)
      end)
      wait_for_fall(memory, 0)
    RUBY
  end

  # Otherwise Ruby does as it always does.
  def test_without_a_scheduler_ruby_gives_memory_back
    assert_operator(Integer(output(<<~RUBY)), :>, 2000)
      Heddle.run { start(10) }
      Array.new(500) { Fiber.new { Fiber.yield }.tap(&:resume) }.each(&:resume)
      p lazy
    RUBY
  end

  # Its fibers use the same stacks, at any time.
  def test_with_another_ractor_ruby_gives_memory_back
    before = "Heddle.run { start(1) }; Ractor.new { 1 }"
    other = "Ractor.new { loop { sleep(1) } }; sleep(0.1)" # it is there before the first run

    [before, other].each do |ractor|
      assert_operator(Integer(output("Warning[:experimental] = false; #{ractor}; #{ROUNDS}")), :>, 2000, ractor)
    end
  end

  def test_ractor_new_is_ruby_s_own_otherwise
    assert_equal(%(["a b", 3, true]\n), output(<<~RUBY))
      Warning[:experimental] = false
      Heddle.run { nil }
      value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
      ractor = Ractor.new(1, 2, name: "a b") { |one, two| one + two }
      p [ractor.name, value.call(ractor), Ractor.new { 1 }.inspect.include?("-e:")]
      begin
        Ractor.new
      rescue ArgumentError
        nil
      end
    RUBY
  end

  def test_a_run_that_waits_does_not_wake_up_for_ever
    assert_equal("true\n", output(<<~RUBY))
      Heddle.run do
        start(300)
        60.times do
          before = Heddle.stats.polls
          sleep(3)
          break p(true) if Heddle.stats.polls - before < 4
        end
      end
    RUBY
  end

  # Fibers get stacks and end while others' memory is given back: what is on a living stack stays.
  def test_no_stack_in_use_is_touched
    assert_equal("0\n", output(<<~RUBY, "SEED" => ENV.fetch("SEED", Random.new_seed % 100_000).to_s))
      random = Random.new(Integer(ENV["SEED"]))
      wrong = 0
      deep = lambda do |depth, number|
        kept = [number] * 5
        depth.zero? ? sleep(random.rand * 0.6) : deep.call(depth - 1, number + 1)
        wrong += 1 unless kept == [number] * 5
      end
      Heddle.run do
        8.times do
          (50 + random.rand(1200)).times do |number|
            Heddle.spawn { deep.call(random.rand(30), number) }
            Enumerator.new { |y| y << deep.call(2, number) if number > 9000; y << 1 }.next if number % 7 == 0
          end
          sleep(random.rand * 0.6)
          GC.start
        end
      end
      p wrong
    RUBY
  end
end
