# frozen_string_literal: true

# bin/test: takes 30 s, 0.9 of a core

require_relative "../test_helper"
require "support/clients"

# A few restarts under load of the 200 that restarts.rb makes, and that it sees a request that is lost.
class SoakRestartsTest < HeddleTest
  RUN = File.join(__dir__, "restarts.rb")

  def setup
    super
    missing = %w[protocol-rack protocol-http1].filter_map { |gem| TestSupport::Clients.load(gem, gem.tr("-", "/")) }
    skip(missing.first) if missing.any?
  end

  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}_loses_no_request") do
      skip("backend #{backend}: #{reason}") if reason
      outcome = restart("--restarts", "8", "--", "--backend", backend)

      assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
      assert_match(/^8 restarts \(.*\): [1-9]\d* requests answered, 0 lost; /, outcome.out)
    end
  end

  def test_a_killed_worker_loses_its_own_requests_alone
    outcome = restart("--kill", "--restarts", "3", "--work", "0.2")

    assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
    assert_match(/^3 restarts \(3 KILL; .*\): [1-9]\d* requests answered, \d+ lost; /, outcome.out)
  end

  def test_a_lost_request_is_seen
    outcome = restart("--restarts", "3", "--work", "1", "--", "--drain", "0.001")

    assert_equal(1, outcome.status.exitstatus, outcome.err)
    assert_match(/ [1-9]\d* lost; /, outcome.out)
  end

  private

  def restart(*options) = run_command(*ruby_command, RUN, *options)
end
