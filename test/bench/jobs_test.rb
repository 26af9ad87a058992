# frozen_string_literal: true

# bin/test: takes 15 s, 0.8 of a core

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"
require "support/servers/redis"

# bench/jobs.rb, with a few jobs.
class JobsBenchmarkTest < HeddleTest
  COMMAND = File.expand_path("../../bench/jobs.rb", __dir__)
  FIGURES = /\A\| (threads 5|tasks 50) \| (1|2) \| [1-9]\d* \| \d+\.\d+ \| [1-9]\d* \| [1-9]\d* \| (-|[1-9]\d*) \|\z/

  { "sidekiq" => [100, "2", "threads 5", "tasks 50"], "solid_queue" => [40, "1", "tasks 50"] }
    .each do |engine, (count, processes, *modes)|
    define_method("test_#{engine}") do
      gems = [engine, "pg", "redis-client", "activerecord"]
      missing = gems.find { |name| Gem::Specification.find_all_by_name(name).empty? }
      missing ||= [TestSupport::Servers::Postgres, TestSupport::Servers::Redis].filter_map(&:missing).first
      skip("missing: #{missing}") if missing

      outcome = run_command(*ruby_command, "-W0", COMMAND, "--engine", engine, "--jobs", count.to_s, "--wait", "0.01",
                            "--modes", modes.join(",").tr(" ", ":"), "--processes", processes)

      assert_predicate(outcome, :success?, outcome.err)
      rows = outcome.out.lines(chomp: true).drop(4)

      assert_equal(modes, rows.map { |row| row[FIGURES, 1] }, outcome.out)
    end
  end

  def test_jobs_beside_others_that_compute
    skip("sidekiq is not installed") if Gem::Specification.find_all_by_name("sidekiq").empty?
    missing = [TestSupport::Servers::Postgres, TestSupport::Servers::Redis].filter_map(&:missing).first
    skip("missing: #{missing}") if missing

    outcome = run_command(*ruby_command, "-W0", COMMAND, "--engine", "sidekiq", "--jobs", "50", "--wait", "0.01",
                          "--modes", "tasks:20", "--processes", "1", "--slow", "50")

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(/\| [1-9]\d* \| [1-9]\d* \| [1-9]\d* \|\n\z/, outcome.out)
  end

  def test_wrong_options
    outcome = run_command(*ruby_command, COMMAND, "--engine", "cron")

    refute_predicate(outcome, :success?)
    assert_equal("invalid argument: --engine cron\n", outcome.err)
  end
end
