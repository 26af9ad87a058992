# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "support/solid_queue_case"
require "support/servers/postgres"

# heddle/solid_queue: the worker of a real Solid Queue runs its jobs as tasks.
contract "SolidQueuePostgres" do
  extend TestSupport::SolidQueueCase

  solid_queue "pg", count: 100, server: TestSupport::Servers::Postgres

  # 100 jobs, and a pool of 8 in each of four processes.
  def test_connections
    assert_operator(outcome.dig("jobs", "connections"), :<=, 32)
  end
end
