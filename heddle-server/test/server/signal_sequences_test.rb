# frozen_string_literal: true

# bin/test: takes 60 s, 1 core

require_relative "../test_helper"
require "support/serve_case"

# Random sequences of signals to `heddle serve` under load, at random moments: while Ruby starts, while the application
# is loaded, while workers are replaced. A failure prints the seed: HEDDLE_SEED=N runs the same sequence again.
class ServeSignalSequencesTest < HeddleTest
  include TestSupport::ServeCase

  SEED = Integer(ENV.fetch("HEDDLE_SEED") { Random.new_seed % 1_000_000 })
  SIGNALS = %i[HUP USR2 TTIN TTOU].freeze

  [[0], [2], [2, "--preload"]].each do |count, *arguments|
    define_method("test_no_request_is_lost_with_#{[count, *arguments].join("_").tr("-", "")}_workers") do
      random = Random.new(SEED)
      program = serve_in(count, *arguments)
      said = while_asked(program, clients: 2, until_said: "two") do
        6.times do
          program.signal(SIGNALS.sample(random:))
          sleep(random.rand(2.0))
        end
        write("name", "two")
        program.signal(:HUP)
        wait_until("the last release serves", timeout: 120) { ask(program) == "two" }
      end

      assert_equal(%w[one two], said.uniq.sort, "HEDDLE_SEED=#{SEED}\n#{program.said.join}")
      assert_all_end(program, random)
    end
  end

  def assert_all_end(program, random)
    signal = %i[TERM INT].sample(random:)
    program.signal(signal)
    status = program.wait

    assert(program.ended_by?(signal, status),
           "#{signal}: #{status} HEDDLE_SEED=#{SEED}\n#{program.said.join}")
    wait_until("HEDDLE_SEED=#{SEED}: its workers have ended") { gone?(program.pid) }
  end

  def gone?(group)
    Process.kill(0, -group)
    false
  rescue Errno::ESRCH
    true
  end
end
