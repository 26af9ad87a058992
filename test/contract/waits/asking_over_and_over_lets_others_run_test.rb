# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"

# Who asks without waiting, until there is something, lets the others run meanwhile: one of them may bring it.
contract "AskingOverAndOver" do
  {
    "wait_readable" => ->(io) { io.wait_readable(0) },
    "wait_readable_in_no_time" => ->(io) { io.wait_readable(0.0) },
    "wait" => ->(io) { io.wait(0) },
    "wait_for_events" => ->(io) { io.wait(IO::READABLE | IO::PRIORITY, 0) },
    "select" => ->(io) { IO.select([io], nil, nil, 0) },
    "select_in_no_time" => ->(io) { IO.select([io], nil, nil, 0.0) }
  }.each do |name, ask|
    define_method("test_#{name}") do
      reader, writer = IO.pipe.each { |io| keep(io) }
      answer = reactor do
        go { sleep(0.01) && writer.write("x") }
        ask_until_answered { ask.call(reader) }
      end

      assert(answer, "the other one did not run")
    end
  end

  def test_the_wait_for_a_task
    heddle_only("tasks")
    Heddle.run(backend: backend) do
      [0, 0.0].each do |seconds|
        task = Heddle.spawn { sleep(0.01) }

        assert_same(task, ask_until_answered { task.wait(seconds) })
      end
    end
  end

  def test_a_timeout_ends_it
    reader, = IO.pipe.each { |io| keep(io) }

    reactor do
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { ask_until_answered { reader.wait_readable(0) } } }
    end
  end

  private

  # The answer, or nil after a minute.
  def ask_until_answered
    deadline = now + 60
    answer = yield until answer || now > deadline
    answer
  end
end
