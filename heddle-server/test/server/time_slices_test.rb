# frozen_string_literal: true

require_relative "../test_helper"
require "support/serve_case"

# heddle serve --time-slice: a request that computes does not hold up the others.
class ServeTimeSlicesTest < HeddleTest
  include TestSupport::ServeCase

  APPLICATION = <<~RUBY
    clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    done = false
    run(lambda do |env|
      if env["PATH_INFO"] == "/compute"
        File.write("begun", "")
        ends = clock.call + 60
        1 until done || clock.call > ends
      else
        done = true
      end
      [200, { "content-type" => "text/plain" }, [done.inspect]]
    end)
  RUBY

  def test_a_request_that_computes_lets_others_run
    write("config.ru", APPLICATION)
    program = serve("--time-slice", "0.005")
    computing = Thread.new { program.get("/compute").body }
    wait_until_begun

    assert_equal("true", program.get("/done").body)
    assert_equal("true", computing.value)
    assert_ends(program)
  end

  def test_wrong_lengths
    outcome = run_command(*ruby_command, EXE, "serve", "--time-slice", "20", chdir: @dir)

    assert_equal(2, outcome.status.exitstatus)
    assert_match(/invalid argument: --time-slice 20 \(must be from 0.001 to 10\)$/, outcome.err)
  end
end
