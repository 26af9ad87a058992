# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"
require "support/site"

contract "FirstAnswerExample" do
  include TestSupport::Examples

  def setup
    super
    @asleep = Thread::Queue.new # never closed: who pops waits until the test ends
    @site = TestSupport::Site.new do |request|
      case request.path
      when "/right" then "192.0.2.7\n"
      when "/wrong" then "<html>hello</html>"
      when "/broken" then [500, "192.0.2.8"]
      else @asleep.pop
      end
    end
  end

  def teardown
    @site.close
    super
  end

  def ask(*paths) = run_example("first_answer", *paths.map { |path| @site.url(path) })

  def test_takes_the_first
    program = ask("/slow", "/right", "/slower")

    assert_equal("192.0.2.7 (says #{@site.url("/right")})\n", program.out)
    assert_equal("", program.err)
    assert_predicate(program.status, :success?)
  end

  def test_passes_over_wrong_answers
    assert_includes(ask("/wrong", "/broken", "/right").out, "192.0.2.7")
  end

  def test_names_each_failure_when_none_succeeds
    program = ask("/wrong", "/broken")

    assert_equal(1, program.status.exitstatus)
    assert_match(%r{/wrong: invalid address: .*\(IPAddr::InvalidAddressError\)$}, program.err)
    assert_match(%r{/broken: 500 "Status" \(Net::HTTPFatalError\)$}, program.err)
    assert_includes(program.err, "no service has answered\n")
  end

  def test_ends_when_nobody_answers
    program = run_example("first_answer", "--seconds", 0.5, @site.url("/slow"), @site.url("/slower"))

    assert_equal("not done after 0.5 s\n", program.err)
    assert_equal(1, program.status.exitstatus)
  end
end
