# frozen_string_literal: true

require "stringio"
require_relative "../test_helper"
require "heddle/demo"
require "heddle/demo/styles"

# The demo's small parts: tables, bars, progress, measurements, and how many requests are made at once.
class DemoPartsTest < HeddleTest
  Demo = Heddle::Demo

  def test_table
    text = Demo::Table.new([["", "a", "bbbb"], ["left", "1"], ["l", "22", "333"]]).to_s

    assert_equal("       a  bbbb\nleft   1\nl     22   333", text)
  end

  def test_bars
    chart = Demo::BarChart.new({ "x" => { "a" => 100, "bb" => 0 }, "yy" => { "a" => 50 } }, format: :to_s.to_proc)

    assert_equal(" x  a   #{"#" * 50} 100\n    bb  # 0\n\nyy  a   #{"#" * 25} 50", chart.to_s)
    assert_equal("x  a  # 0", Demo::BarChart.new({ "x" => { "a" => 0 } }, format: :to_s.to_proc).to_s)
  end

  def test_progress_on_a_terminal_is_one_line
    out = StringIO.new
    out.define_singleton_method(:tty?) { true }
    progress = Demo::Progress.new(2, out:)

    assert_equal(3, progress.step("one") { 3 })
    progress.step("two") { nil }
    progress.clear

    refute_includes(out.string, "\n")
    assert_operator(out.string, :end_with?, "\r\e[K")
  end

  def answer(**changes)
    { started: 1.0, ended: 3.0, made: 10, errors: {}, backend: nil }.merge(changes)
  end

  def test_a_measurement_sums_up_several_clients
    answers = [answer(errors: { "a" => 1 }), answer(started: 2.0, ended: 6.0, errors: { "a" => 2, "b" => 1 })]
    sum = Demo::Measurement.new(answers, asked: 20, limit: 3)

    assert_equal([20, 5.0, { "a" => 3, "b" => 1 }, 4, 3.2, 3],
                 [sum.made, sum.seconds, sum.errors, sum.error_count, sum.rate, sum.limit])
    refute_predicate(sum, :extrapolated?)
    assert_predicate(Demo::Measurement.new([answer], asked: 11), :extrapolated?)
  end

  def test_blocking_is_a_sample_where_it_takes_long
    styles = Demo::Styles.new
    styles.blocking(100) { sleep(0.3) }

    assert_includes(2..5, styles.made)
  end

  def test_a_request_each
    %i[threads heddle].each do |style|
      styles = Demo::Styles.new
      numbers = Thread::Queue.new
      styles.public_send(style, 50) { |number| numbers << number }

      assert_equal([(0...50).to_a, 50], [Array.new(numbers.size) { numbers.pop }.sort, styles.made])
    end
  end

  def test_no_more_at_once_than_the_limit
    %i[threads heddle].each do |style|
      at_once = []
      alive = 0
      styles = Demo::Styles.new(limit: 4)
      styles.public_send(style, 20) do
        at_once << (alive += 1)
        sleep(0.005)
        alive -= 1
      end

      assert_equal([20, 4], [styles.made, at_once.max])
    end
  end

  def test_where_the_system_gives_no_more
    [ThreadError, FiberError].each do |error|
      given = 0
      full = assert_raises(Demo::Styles::Full) do
        Demo::Styles.new.send(:start, 9) { (given += 1) < 5 ? given : raise(error, "can't create") }
      end

      assert_equal(4, full.carried)
    end
  end

  def test_targets_survive_the_way_to_another_process
    body = "\xFF\x00".b
    [Demo::EmbeddedTarget.new(port: 1), Demo::UrlTarget.new(url: "https://localhost:9/x", body:)].each do |target|
      copy = Demo::Target.from(JSON.parse(JSON.generate(target.to_h), symbolize_names: true))

      assert_equal([target.class, target.to_h], [copy.class, copy.to_h])
    end
  end
end
