# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "json"
require "support/api/signatures"

# The signatures in sig/ (RBS) are those of the code: of all that is public, and of nothing else.
class SignaturesTest < HeddleTest
  time_limit 1100 # on a slow machine that others use, too

  API = TestSupport::PublicApi
  SIGNATURES = TestSupport::Signatures.new
  Shape = TestSupport::Signatures::Shape
  # The tests whose calls are compared with the signatures. Tests that take long are left out.
  CALLERS = Dir[*%w[test/contract/{tasks,channels,pools,repeating,debugging}/*
                    test/contract/{workers/blocking_*,timeouts/heddle_timeout}
                    test/contract/{streams/*_a_connection,sockets/*_idle_set_*}
                    test/testing/{clock,left_over}
                    test/{prometheus,rack/middleware} heddle-server/test/server/{server,clients}].map do |names|
                  File.join(ROOT, "#{names}_test.rb")
                end].grep_v(/dump|deadlock|random|runs_where/).freeze
  LONG = "/keep|many|never_wait|address_that_is_none|the_workers|may_run_heddle|Shield.*test_timeouts|" \
         "within_a_second|SlicesAtEveryLine|TimeSlices\\w*#test_(?!without_time|code_that_is_exempt)/"
  # What they need not call: what Ruby calls, what a report reads, and what serves no task.
  UNCALLED = /\AHeddle(::(Accelerate|CLI|Scheduler|Patch|Rails|Sidekiq|TaskFailure|Testing::(Minitest|RSpec)|
                         Pool\#timeout\z|Server::Limits)|
                     \.(dump|backends|patches|would_block))/x

  def test_are_valid
    outcome = run_command(*ruby_command, "-e", 'load Gem.bin_path("rbs", "rbs")', "--",
                          *TestSupport::Signatures::OPTIONS, "validate")

    assert_predicate(outcome, :success?, outcome.out + outcome.err)
  end

  def test_each_class
    assert_same_names(API.modules.map { |name, one| one.is_a?(Class) ? "#{name} < #{one.superclass}" : name },
                      SIGNATURES.modules.map { |name, parent| [name, *parent].join(" < ") })
  end

  def test_each_constant
    assert_same_names(API.documented.select { |_, object| object.type == :constant }.keys, SIGNATURES.constants)
  end

  def test_each_method
    assert_same_names(API.methods.keys, SIGNATURES.methods.keys)
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
    code = CALLERS.map { |file| "load #{file.dump}" }.join("; ")
    outcome = run_command(*ruby_command, "-r", "support/api/checked_calls", "-e", code, "--", "--exclude", LONG,
                          env: { "HEDDLE_CHECKED_CALLS" => report, "HEDDLE_TEST_BACKENDS" => "epoll" }, timeout: 1000)

    assert_path_exists(report, outcome.err)
    called, misfits = JSON.parse(File.read(report))

    assert_empty(misfits)
    assert_empty(API.methods.keys.grep_v(UNCALLED) - called, "no test in CALLERS calls it")
  end

  private

  def assert_same_names(public, signatures)
    assert_empty(public - signatures, "public, but not in sig/")
    assert_empty(signatures - public, "in sig/, but not public")
  end

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
