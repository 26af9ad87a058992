# frozen_string_literal: true

# bin/test: takes 20 s, 0.9 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq: with time slices, a job that computes does not hold up the others.
contract "SidekiqTimeSlices" do
  extend TestSupport::SidekiqCase

  # The setting of the program comes first.
  { "the_program" => { TEST_TIME_SLICE: "0.005", HEDDLE_TIME_SLICE: "0" },
    "the_environment" => { HEDDLE_TIME_SLICE: "0.005" },
    "nobody" => { HEDDLE_TIME_SLICE: nil } }.each do |name, env|
    define_method("test_jobs_beside_one_that_computes_as_#{name}_says") do
      pid = start_sidekiq("-c", "101", "-t", "1", **env)
      push("Compute", 60)
      wait_for_reports("computes", 1)
      100.times { |number| push("Wait", 0.01, number) }
      done = wait_for_reports("done", 100)

      assert_equal([*0...100], done.map { |report| report[1] }.sort)
      assert_empty(reports("computed"), "it has not let them run")
      stop(pid)
    end
  end

  # A job that computes is back in its queue, with the job that waits, and a job that rescues the Shutdown ends once.
  def test_term
    push("Swallow", false)
    push("Compute", 60)
    push("Wait", 60, 1)
    pid = start_sidekiq("-c", "10", "-t", "1", TEST_TIME_SLICE: "0.005")
    wait_for_reports("computes", 1)
    wait_for_reports("began", 1)
    wait_for_reports("begun", 1)

    assert_predicate(stop(pid), :success?, @log)
    assert_equal(%w[Compute Swallow Wait], queued.sort)
    assert_equal(0, redis("ZCARD", "retry"))
  end
end
