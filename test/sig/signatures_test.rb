# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "json"
require "support/signatures"

# The signatures in sig/ (RBS) are those of the code: of all that is public, and of nothing else.
class SignaturesTest < HeddleTest
  API = TestSupport::PublicApi
  SIGNATURES = TestSupport::Signatures.new
  Shape = TestSupport::Signatures::Shape
  # In test/contract/: the tests whose calls are compared with the signatures.
  CALLERS = %w[tasks/a_scope_ends_with_its_tasks tasks/a_shield_holds tasks/background_tasks tasks/blocking_and_offload
               tasks/every tasks/limiter tasks/map_and_each tasks/no_error_is_lost tasks/pool tasks/race_and_any
               tasks/rate_limiter tasks/run_waits_for_its_tasks tasks/settle tasks/spawn_and_the_task_it_returns
               tasks/the_block_goes_on_where_its_caller_is timeouts/heddle_timeout].freeze
  # Those of them that make thousands of calls.
  LONG = "/keep|many/"
  # What they need not call: what Ruby calls, what a report reads, and what serves no task.
  UNCALLED = /\AHeddle(::(Scheduler|Patch|TaskFailure|Pool#timeout\z)|\.(dump|backends|patches|would_block))/

  def test_are_valid
    outcome = run_command(*ruby_command, "-e", 'load Gem.bin_path("rbs", "rbs")', "--",
                          *TestSupport::Signatures::OPTIONS, "validate")

    assert_predicate(outcome, :success?, outcome.out + outcome.err)
  end

  def test_each_class
    expected = API.modules.transform_values { |one| one.superclass.name if one.is_a?(Class) }

    assert_equal(expected, SIGNATURES.modules)
  end

  def test_each_constant
    expected = API.documented.select { |_, object| object.type == :constant }.keys

    assert_equal(expected.sort, SIGNATURES.constants.sort)
  end

  def test_each_method
    assert_empty(API.methods.keys - SIGNATURES.methods.keys, "public, but not in sig/")
    assert_empty(SIGNATURES.methods.keys - API.methods.keys, "in sig/, but not public")
  end

  def test_the_parameters_of_each_method
    wrong = API.methods.slice(*SIGNATURES.methods.keys).flat_map do |name, method|
      code = shape_of(name, method).to_h
      sig = SIGNATURES.methods.fetch(name).to_h
      differing = code.keys.reject { |key| code[key] == sig[key] }
      differing.map { |key| "#{name}: #{key}: #{code[key]}, in sig/ #{sig[key]}" }
    end

    assert_empty(wrong, wrong.join("\n"))
  end

  def test_the_arguments_and_values_of_calls
    report = File.join(tempdir, "calls.json")
    code = CALLERS.map { |name| "load #{File.join(ROOT, "test/contract/#{name}_test.rb").dump}" }.join("; ")
    outcome = run_command(*ruby_command, "-r", "support/checked_calls", "-e", code, "--", "--exclude", LONG,
                          env: { "HEDDLE_CHECKED_CALLS" => report, "HEDDLE_TEST_BACKENDS" => "epoll" })

    assert_path_exists(report, outcome.err)
    called, misfits = JSON.parse(File.read(report))

    assert_empty(misfits)
    assert_empty(API.methods.keys.grep_v(UNCALLED) - called, "no test in CALLERS calls it")
  end

  private

  def shape_of(name, method)
    document = API.documented.fetch(name)
    parameters = parameters(name, method, document)
    of = ->(*kinds) { parameters.select { |kind,| kinds.include?(kind) }.map(&:last) }
    Shape.new(needed: of[:req].size, positional: of[:req, :opt], rest: of[:rest].any?,
              needed_keywords: of[:keyreq].sort, keywords: of[:keyreq, :key].sort, keyrest: of[:keyrest].any?,
              block: block?(document, parameters))
  end

  def parameters(name, method, document)
    return [[:req, name[/\w+(?==\z)/].to_sym]] if name.end_with?("=")

    method.source_location ? method.parameters : described(document.tag(:overload) || document)
  end

  # The parameters of a method that is written in C, as its comment says.
  def described(document)
    document.parameters.map do |name, default|
      case name
      when /\A\*\*/ then [:keyrest, name]
      when /\A\*/ then [:rest, name]
      when /\A&/ then [:block, name]
      when /:\z/ then [default ? :key : :keyreq, name.chomp(":").to_sym]
      else [default ? :opt : :req, name.to_sym]
      end
    end
  end

  # Ruby does not know of a block that is yielded to.
  def block?(document, parameters)
    parameters.any? { |kind,| kind == :block } ||
      [document, *document.tags(:overload)].any? { |one| one.has_tag?(:yield) || one.has_tag?(:yieldparam) }
  end
end
