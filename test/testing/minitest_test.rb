# frozen_string_literal: true

require_relative "../test_helper"

# Heddle::Testing::Minitest, in a process whose tests fail.
class TestingMinitestTest < HeddleTest
  PROGRAM = <<~RUBY
    require "minitest/autorun"
    require "heddle/testing"

    class ProgramTest < Minitest::Test
      include Heddle::Testing::Minitest

      def setup
        @server = Heddle.spawn(background: true) { sleep }
      end

      def teardown = @server.cancel.wait

      def test_time
        sleep 3600

        assert_equal(3600, clock.now)
        assert_predicate(@server, :alive?)
      end

      def test_failure = assert_equal(1, 2)

      def test_failure_of_a_task
        Heddle.spawn { sleep(1) && assert_equal(3, 4) }
        sleep
      end

      def test_error_of_a_task
        Heddle.spawn { sleep(1) && raise(IOError, "gone") }
        sleep
      end

      def test_left_over = Heddle.spawn(name: "worker") { sleep }

      def test_skipped = skip("not now")

      def test_seed = puts("seed \#{clock.seed}")
    end
  RUBY

  def test_outcomes
    outcome = program

    assert_match(/^7 runs, 5 assertions, 2 failures, 2 errors, 1 skips$/, outcome.out)
    assert_match(/test_failure .*\n.*Expected: 1\n/, outcome.out)
    assert_match(/test_failure_of_a_task .*\n.*Expected: 3\n/, outcome.out)
    assert_match(/test_error_of_a_task:\nIOError: gone\n/, outcome.out)
    assert_match(/LeftOver: 1 left over .* the task "worker" started at -e:32\n/, outcome.out)
    refute_match(/Cancelled/, outcome.out)
    assert_equal(4, outcome.err.scan(/^heddle: this order of tasks comes back with the seed \d+$/).size)
  end

  def test_the_seed_comes_from_the_seed_of_minitest
    seeds = %w[1 1 2].map { |seed| program("--seed", seed, "-n", "test_seed").out[/^\.?seed (\d+)/, 1] }

    assert_equal(seeds[0], seeds[1])
    refute_equal(seeds[0], seeds[2])
  end

  private

  def program(*) = run_ruby(PROGRAM, "--", *, gems: true)
end
