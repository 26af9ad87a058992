# frozen_string_literal: true

# bin/test: takes 15 s, 0.5 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq beside libraries that change Sidekiq.
contract "SidekiqLibraries" do
  extend TestSupport::SidekiqCase

  def setup
    super
    %w[sidekiq-cron sidekiq-unique-jobs job-iteration activejob railties activerecord].each do |gem|
      skip("#{gem} is not installed") if Gem::Specification.find_all_by_name(gem).empty?
    end
  end

  # sidekiq-cron, sidekiq-unique-jobs, and an iteration that goes on in the next process.
  once def test_cron_unique_jobs_and_iterations
    push("Enqueue")
    first = start_sidekiq("-c", "50", "-t", "3", TEST_LIBRARIES: "1")
    wait_for_reports("turn", 3)
    wait_for_reports("executed", 1)

    assert_predicate(stop(first), :success?)
    second = start_sidekiq("-c", "50", TEST_LIBRARIES: "1")
    turns = wait_for_reports("turn", 15)
    crons = wait_for_reports("cron", 1)
    unique = wait_for_reports("unique", 1)

    assert_equal([*0...15], turns.map { |turn| turn[1] })
    assert_equal([first, second], turns.map(&:last).uniq)
    assert_equal(["sidekiq.heddle"], crons.map(&:last).uniq)
    assert_equal([[["enqueued", 1]], 1, []], [reports("enqueued"), unique.size, reports("overlap")])
  end
end
