# frozen_string_literal: true

# bin/test: takes 30 s, 0.7 of a core

require_relative "../test_helper"
require "support/solid_queue/solid_queue_case"
require "support/servers/postgres"

# heddle/solid_queue: the worker of a real Solid Queue runs its jobs as tasks.
contract "SolidQueuePostgres" do
  extend TestSupport::SolidQueueCase

  solid_queue "pg", count: 100, server: TestSupport::Servers::Postgres

  # 100 jobs, and a pool of 8 in each of four processes.
  def test_connections
    assert_operator(outcome.dig("jobs", "connections"), :<=, 32)
  end

  # Neither the jobs nor the worker give up while transactions keep all connections for longer than 5 seconds.
  def test_transactions_that_keep_all_connections
    assert_empty(outcome.dig("holding", "failed"))
  end

  def test_recurring_tasks
    assert_equal([["solid_queue.heddle"]], outcome.dig("others", "ticks"))
  end

  def test_concurrency_controls
    alone = outcome.dig("others", "alone")

    assert_equal([%w[begins ends]], alone.map(&:first).each_slice(2).uniq)
    assert_equal([*0...6], alone.map(&:last).uniq.sort)
  end

  def test_role_and_shard
    after = %w[writing default]

    assert_equal([[[%w[reading one], after], 5], [[%w[writing two], after], 5]], outcome.dig("others", "placed"))
  end

  def test_a_worker_that_stands_still
    assert_equal({ "failed" => ["SolidQueue::Processes::ProcessPrunedError"], "done" => [*0...5] },
                 outcome.fetch("paused_worker"))
  end

  def test_locale_and_time_zone
    assert_equal([[%w[de Europe/Berlin], 14], [%w[en UTC], 14]], outcome.dig("holding", "held"))
  end
end
