# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.report: errors of a program that goes on.
contract "Report" do
  heddle_only "Heddle.report"

  def teardown
    Heddle.on_error(nil)
    super
  end

  def test_the_handler_gets_the_error_and_the_task
    seen = []
    Heddle.on_error { |error, task| seen << [error, task&.name] }
    errors = Array.new(3) { |number| RuntimeError.new(number.to_s) }
    run do
      Heddle.spawn(name: "worker") do
        Heddle.report(errors[0], "the job 5")
        Heddle.report(errors[1])
      end
      Heddle.report(errors[2], "the job 6")
    end

    assert_equal([[errors[0], "the job 5"], [errors[1], "worker"]], seen.first(2))
    assert_same(errors[2], seen[2].first)
  end

  def test_without_a_handler_it_is_printed
    error = RuntimeError.new("broken")
    Thread.current.report_on_exception = true
    _, said = capture_io do
      run { Heddle.spawn(name: "worker") { [["the job 5"], []].each { |what| Heddle.report(error, *what) } } }
    end

    assert_match(/\Aheddle: the job 5 has failed:\n.*broken \(RuntimeError\)\n#<Heddle::Task worker \w+> term/, said)
    assert_equal(2, said.scan("broken (RuntimeError)").size)
  end

  once def test_outside_of_a_task
    seen = []
    Heddle.on_error { |error, task| seen << [error.message, task] }
    Heddle.report(RuntimeError.new("broken"), "the job 5")

    assert_equal([["broken", nil]], seen)
  end

  once def test_what_is_no_error
    message = assert_raises(ArgumentError) { Heddle.report("broken") }.message

    assert_equal('error: must be an Exception, not "broken"', message)
  end
end
