# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/testing"

# What Heddle::Testing.example says of tasks that a test leaves behind.
contract "TestingLeftOver" do
  heddle_only("plain threads have no tasks")

  def example(&) = Heddle::Testing.example(backend:, &)

  # @return [Heddle::Testing::LeftOver]
  def left_over(&block)
    error = nil

    capture_io { error = assert_raises(Heddle::Testing::LeftOver) { example(&block) } }
    error
  end

  def test_the_place_of_a_task
    ended = []
    place = nil
    error = left_over do
      place = "#{__FILE__}:#{__LINE__ + 1}"
      Heddle.spawn(name: "worker") do
        sleep
      ensure
        ended << :worker
      end
    end

    assert_match(/\A1 left over when the test had ended: the task "worker" started at #{place}$/, error.message)
    assert_match(/^task "worker": waits in sleep/, error.message)
    assert_equal([:worker], ended)
  end

  def test_each_is_named
    error = left_over do
      Heddle.scope do |scope|
        scope.spawn { Heddle.spawn { sleep 1 } }
        Fiber.schedule { Thread::Queue.new.pop }
      end
    end

    assert_match(/\A1 left over when the test had ended: a fiber of Fiber\.schedule$/, error.message)
    error = left_over { 2.times { Heddle.spawn { sleep 1 } } }

    assert_match(/\A2 left over when the test had ended: the task started at .*; the task started at /, error.message)
  end

  def test_ended_tasks_and_background_tasks
    ended = []
    value = example do
      Heddle.spawn { 5.times { sleep 0 } && (ended << :ready) }
      Heddle.spawn(background: true) { sleep && (ended << :never) }
      Heddle.every(1) { nil }
      :value
    end

    assert_equal([:value, [:ready]], [value, ended])
  end

  # The hook that notes the places goes with the run.
  def test_nothing_stays
    before = Heddle.on_spawn { nil }.tap(&:remove)
    example { nil }
    left_over { Heddle.spawn { sleep } }
    hooks = before.class.all

    assert_empty(hooks)
  end

  def test_the_error_of_the_block_comes_first
    capture_io { assert_raises(IOError) { example { Heddle.spawn { sleep } && raise(IOError) } } }
    capture_io { assert_raises(KeyError) { example { Heddle.spawn { raise KeyError } && sleep } } }
    assert_raises(ArgumentError) { Heddle::Testing.example }
  end
end
