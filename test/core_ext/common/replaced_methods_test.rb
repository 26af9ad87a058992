# frozen_string_literal: true

# bin/test: takes 10 s, 0.7 of a core

require_relative "../../test_helper"
require "support/replaced_methods"

# Every method that Heddle replaces gives what Ruby's own gives: in threads, with a scheduler, in Ractors, and together
# with libraries that replace it as well, whichever of the two is first.
class ReplacedMethodsTest < HeddleTest
  SCRIPT = File.expand_path("../../support/replaced_methods.rb", __dir__)
  CALLED_IN_A_CHILD = ["Process.daemon"].freeze
  PLAIN = {} # rubocop:disable Style/MutableConstant -- what plain Ruby says in each place

  def test_the_table_is_complete
    replaced = Heddle::CoreExt.replacements.flat_map do |_, owner, methods|
      next [] if methods.is_a?(Symbol)

      all = methods.instance_methods(false) + methods.private_instance_methods(false)
      all.map { |name| [owner, name] }
    end
    table = ReplacedMethods::ALL.keys.map { |name| ReplacedMethods.owner_and_name(name) }

    assert_empty(replaced - table)
  end

  %w[alias bind prepend].product(%w[before between after]).each do |style, order|
    define_method(:"test_with_a_library_that_uses_#{style}_#{order}_heddle") do
      plain = outcomes(nil, nil, "thread")["thread"]

      found = outcomes(style, order, "thread", "scheduler")

      assert_same_outcomes(plain, found["thread"])
      assert_same_outcomes(plain, found["scheduler"])
      assert_library_called(found["thread"])
      # (Else Heddle's stands above the library's, and need not call it: Timeout.timeout.)
      assert_library_called(found["scheduler"]) if style == "prepend" || order == "after"
    end
  end

  def test_resolv_replace
    code = <<~RUBY
      ARGV.each { |library| require library }
      server = TCPServer.new("127.0.0.1", 0)
      connect = -> { TCPSocket.new("localhost", server.local_address.ip_port).close }
      connect.call
      Heddle.run { connect.call }
      connect.call
      print("connected")
    RUBY
    run_ruby("require 'resolv-replace'", heddle: false).success? or skip("there is no resolv-replace")

    [%w[heddle resolv-replace], %w[resolv-replace heddle]].each do |libraries|
      outcome = run_ruby(code, *libraries, heddle: false)

      assert_equal(["connected", ""], [outcome.out, outcome.err])
    end
  end

  def test_nothing_is_replaced_before_the_first_scheduler
    code = <<~RUBY
      load ARGV[0]
      methods = lambda do
        ReplacedMethods::ALL.keys.filter_map do |name|
          owner, method = ReplacedMethods.owner_and_name(name)
          owner.instance_method(method)
        rescue NameError
          nil # this Ruby has no such method
        end
      end
      names = -> { [IO, File, Dir, Thread.singleton_class].map { |owner| owner.private_instance_methods(false) } }
      before = [methods.call, names.call]
      require "heddle"
      print(before == [methods.call, names.call])
      Heddle.run { nil }
      print((before.first & methods.call).size < 10, names.call.flatten.grep(/heddle/).empty?)
    RUBY

    assert_equal("truetruefalse", assert_script(code, SCRIPT, heddle: false))
  end

  def test_with_a_collection_at_each_object
    plain = outcomes(nil, nil, "thread")["thread"]
    found = outcomes(nil, "after", "thread, collecting", "scheduler, collecting")

    found.each_value { |one| assert_same_outcomes(plain, one) }
    assert_equal(2, found.size)
  end

  def test_in_ractors
    plain = outcomes(nil, nil, "ractor")["ractor"]
    found = outcomes(nil, "after", "ractor", "ractor scheduler")

    assert_same_outcomes(plain, found["ractor"])
    # (What Ruby itself cannot do in a Ractor is no question of the scheduler.)
    plain = plain.reject { |_, (said)| said.match?(/Ractor::(IsolationError|UnsafeError)/) }

    assert_operator(plain.size, :>, 70)
    assert_same_outcomes(plain, found["ractor scheduler"])
  end

  private

  # place => name => [what came of it, was the library's method called]
  def outcomes(*arguments)
    PLAIN.fetch(arguments) do
      code = "load #{SCRIPT.dump}; ReplacedMethods.main(*#{arguments.inspect})"
      outcome = run_ruby(code, heddle: false, options: ["-W:no-experimental"])

      assert_predicate(outcome, :success?, outcome.err)
      found = Hash.new { |hash, place| hash[place] = {} }
      outcome.out.each_line { |line| JSON.parse(line).then { |place, name, *rest| found[place][name] = rest } }
      arguments[1] ? found : PLAIN[arguments] = found
    end
  end

  def assert_same_outcomes(plain, found)
    wrong = plain.filter_map { |name, (said)| [name, said, found.dig(name, 0)] if found.dig(name, 0) != said }

    assert_empty(wrong)
  end

  def assert_library_called(found)
    assert_empty(found.filter_map { |name, (_, called)| name unless called } - CALLED_IN_A_CHILD)
  end
end
