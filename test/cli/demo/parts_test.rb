# frozen_string_literal: true

require "stringio"
require_relative "../../test_helper"
require "heddle/cli/demo/settings"

# The demo's small parts: tables, bars, progress, measurements, children, and how many requests are made at once.
class DemoPartsTest < HeddleTest
  Demo = Heddle::CLI::Demo

  def test_table
    text = Demo::Report.table([["", "a", "bbbb"], ["left", "1", ""], ["l", "22", "333"]])

    assert_equal("       a  bbbb\nleft   1\nl     22   333", text)
  end

  def test_bars
    chart = Demo::Report.bars({ "x" => { "a" => 100, "bb" => 0 }, "yy" => { "a" => 50 } }, &:to_s)

    assert_equal(" x  a   #{"#" * 50} 100\n    bb  # 0\n\nyy  a   #{"#" * 25} 50", chart)
    assert_equal("x  a  # 0", Demo::Report.bars({ "x" => { "a" => 0 } }, &:to_s))
  end

  def test_progress_on_a_terminal_is_one_line
    out = StringIO.new
    out.define_singleton_method(:tty?) { true }
    result = Demo::Runner.new(Demo::Settings.new(requests: 2, delays: [0]), progress_out: out).run

    assert_equal([26, 0], [result.requests, result.errors])
    assert_equal(4, out.string.scan("\r\e[K[").size)
    refute_includes(out.string, "\n")
    assert_operator(out.string, :end_with?, "\r\e[K")
  end

  def answer(**changes)
    { started: 1.0, ended: 3.0, made: 10, errors: {}, backend: nil }.merge(changes)
  end

  def test_a_measurement_sums_up_several_clients
    answers = [answer(errors: { "a" => 1 }), answer(started: 2.0, ended: 6.0, errors: { "a" => 2, "b" => 1 })]
    sum = Demo::Measurement.of(answers, 20, 3)

    assert_equal([20, 5.0, { "a" => 3, "b" => 1 }, 4, 3.2, 3],
                 [sum.made, sum.seconds, sum.errors, sum.error_count, sum.rate, sum.limit])
    refute_predicate(sum, :extrapolated?)
    assert_predicate(Demo::Measurement.of([answer], 11, nil), :extrapolated?)
  end

  # A target whose requests do what the block does.
  def target(&get)
    Object.new.tap do |target|
      target.define_singleton_method(:get) { |_delay_ms, number| get.call(number) }
      target.define_singleton_method(:mistake) { |_response, _delay_ms, _number| nil }
    end
  end

  def measure(style, count, limit: nil, &)
    Demo::Client.new(target(&), limit:).measure(style, 0, count)
  end

  def test_blocking_is_a_sample_where_it_takes_long
    assert_includes(1..5, measure(:blocking, 100) { sleep(0.3) }[:made])
  end

  def test_a_request_each
    %i[threads heddle].each do |style|
      numbers = Thread::Queue.new
      answer = measure(style, 50) { |number| numbers << number }

      assert_equal([(0...50).to_a, 50, {}],
                   [Array.new(numbers.size) { numbers.pop }.sort, *answer.values_at(:made, :errors)])
    end
  end

  def test_no_more_at_once_than_the_limit
    %i[threads heddle].each do |style|
      at_once = []
      alive = 0
      answer = measure(style, 20, limit: 4) do
        at_once << (alive += 1)
        sleep(0.005)
        alive -= 1
      end

      assert_equal([20, 4], [answer[:made], at_once.max])
    end
  end

  def test_where_the_system_gives_no_more
    [ThreadError, FiberError].each do |error|
      given = 0
      client = Demo::Client.new(nil)
      client.define_singleton_method(:threads) do |count|
        start(count) { (given += 1) < 5 ? given : raise(error, "can't create") }
      end

      assert_equal({ full: 4 }, client.measure(:threads, 0, 9))
    end
  end

  def test_a_child_ends_with_its_parent_and_says_what_is_wrong
    child = Demo::Child.new { raise("no good") }

    assert_equal("no good", assert_raises(Demo::Child::Failed) { child.hear }.message)
    assert_match(/before its time/, assert_raises(Demo::Child::Failed) { child.hear }.message)
    child.close

    assert_empty(Demo::Child.all)
  end
end
