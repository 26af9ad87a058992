# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"

# Heddle::Testing::RSpec, in a process whose examples fail.
class TestingRSpecTest < HeddleTest
  PROGRAM = <<~RUBY
    require "rspec/core"
    require "heddle/testing"

    RSpec.configure { |config| config.include Heddle::Testing::RSpec, :heddle }

    RSpec.describe "a program", :heddle do
      before { @server = Heddle.spawn(background: true) { sleep } }
      after { @server.cancel.wait }

      it "has a clock" do
        sleep 3600
        raise "the time is wrong" unless clock.now == 3600 && @server.alive?
      end

      context "in a group of a group" do
        it("has one run") { raise "no run" unless clock.now.zero? }
      end

      it("fails") { raise KeyError, "an error of the example" }

      it "fails by a task" do
        Heddle.spawn { sleep(1) && raise(IOError, "an error of a task") }
        sleep
      end

      it("leaves something") { Heddle.spawn(name: "worker") { sleep } }

      it("has a seed", heddle_seed: 7) { puts "seed \#{clock.seed}" }
    end

    RSpec.describe "another program" do
      it("has no clock") { raise "a clock" if Heddle::Testing.clock }
    end

    exit(RSpec::Core::Runner.run(ARGV))
  RUBY

  def setup
    super
    missing = TestSupport::Clients.load("rspec-core", "rspec/core/version")
    skip(missing) if missing
  end

  def test_outcomes
    outcome = run_ruby(PROGRAM, "--", "--no-color", gems: true)

    assert_match(/^7 examples, 3 failures$/, outcome.out)
    assert_match(/KeyError:\s+an error of the example/, outcome.out)
    assert_match(/IOError:\s+an error of a task/, outcome.out)
    assert_match(/LeftOver:\s+1 left over .* the task "worker" started at -e:26/, outcome.out)
    assert_match(/seed 7$/, outcome.out)
    refute_match(/Cancelled/, outcome.out)
    assert_equal(3, outcome.err.scan(/^heddle: this order of tasks comes back with the seed \d+$/).size)
  end
end
