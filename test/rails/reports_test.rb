# frozen_string_literal: true

# bin/test: takes 8 s, 0.9 of a core

require_relative "../test_helper"
require "json"

# What Rails hears of tasks: their queries in the log line of a request, and their errors in Rails.error.
contract "RailsReports" do
  program = File.expand_path("../support/rails/reports_program.rb", __dir__)
  outcomes = {}

  heddle_only "it is about tasks"

  define_method(:outcome) do |version|
    missing = { "railties" => version, "activerecord" => version, "sqlite3" => ">= 0" }.find do |name, requirement|
      Gem::Specification.find_all_by_name(name, requirement).none?
    end
    skip("the gem #{missing.join(" ")} is not installed (bin/test tries to install it)") if missing
    outcomes[version] ||= begin
      outcome = run_command(*ruby_command, "-W1", program, version, backend)

      assert_predicate(outcome, :success?, outcome.err)
      JSON.parse(outcome.out)
    end
  end

  define_method(:test_queries_of_tasks_count_as_those_of_the_request) do
    found = outcome("~> 8.0")

    assert_equal([6, 1], found["counts"])
    assert_operator(found["db_runtime"], :>, 0)
    assert_match(/Completed 200 OK.*ActiveRecord: \d+\.\dms \(6 queries, 1 cached\)/, found["log"])
    refute_match(/Views: -/, found["log"])
  end

  define_method(:test_errors_of_tasks_are_reported) do
    found = outcome("~> 8.0")

    assert_equal([["no route", "mail", "heddle", false], ["no audit", "audit", "heddle", false]], found["errors"])
    assert_equal(["no route", "no audit"], found["handled"])
  end
end
