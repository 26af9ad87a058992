# frozen_string_literal: true

# bin/test: takes 8 s, 0.5 of a core

require_relative "../test_helper"
require "json"

# What `require "heddle/rails"` hands to tasks, without Rails.
contract "RailsInheritance" do
  program = File.expand_path("../support/rails/inheritance_program.rb", __dir__)
  outcomes = {}

  heddle_only "it is about tasks"

  define_method(:outcome) do |requirement, name|
    unless Gem::Specification.find_all_by_name("activerecord", requirement).any?
      skip("ActiveRecord #{requirement} is not installed (bin/test tries to install it)")
    end
    outcomes[requirement] ||= begin
      outcome = run_command(*ruby_command, "-W1", program, requirement, backend)

      assert_predicate(outcome, :success?, outcome.err)
      JSON.parse(outcome.out)
    end
    outcomes[requirement].fetch(name)
  end

  # (ActiveRecord 7.2 asks for no session.)
  def test_asynchronous_queries
    assert_equal([3, [true, false, false], true], outcome("~> 8.0", "asynchronous"))
  end

  { "7_2" => "~> 7.2.0", "8" => "~> 8.0" }.each do |version, requirement|
    define_method("test_a_task_has_a_copy_#{version}") do
      ada = %w[ada Berlin de]
      bob = %w[bob Paris fr]

      assert_equal([[ada, ada, %w[carl Tokyo en]], bob], outcome(requirement, "a_task_has_a_copy"))
      assert_equal([%w[eve Tokyo en], %w[fred Tokyo fr]], outcome(requirement, "two_tasks"))
      assert_equal(ada, outcome(requirement, "tasks_of_tasks"))
    end

    define_method("test_a_task_loads_no_active_record_#{version}") do
      refute(outcome(requirement, "not_loaded"))
    end

    define_method("test_the_block_of_a_run_is_its_callers_#{version}") do
      assert_equal(%w[bob Paris fr], outcome(requirement, "the_block"))
    end

    define_method("test_inherit_current_can_be_switched_off_#{version}") do
      assert_equal([nil, nil], outcome(requirement, "not_inherited"))
    end

    define_method("test_log_tags_#{version}") do
      assert_equal(["[request 7] [one] done", "[request 7] [two] done", "[request 7] all done"],
                   outcome(requirement, "log_tags"))
    end

    define_method("test_roles_of_databases_#{version}") do
      assert_equal(%w[reading reading], outcome(requirement, "role"))
    end

    define_method("test_the_context_of_error_reports_#{version}") do
      assert_equal([{ "controller" => "posts" }, { "controller" => "posts" }], outcome(requirement, "context"))
    end

    define_method("test_an_offloaded_block_has_a_copy_#{version}") do
      assert_equal([%w[ada Berlin de]] * 4, outcome(requirement, "offloaded"))
      assert_equal(["[request 7] [own] done"], outcome(requirement, "offloaded_log_tags"))
    end

    define_method("test_isolation_by_thread_is_told_once_#{version}") do
      said = outcome(requirement, "by_thread")

      assert_equal(1, said.lines.size)
      assert_includes(said, "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber")
    end
  end
end
