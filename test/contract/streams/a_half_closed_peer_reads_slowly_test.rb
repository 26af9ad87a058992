# frozen_string_literal: true

require_relative "../../test_helper"

# A peer that has said all (it has half-closed) and reads slowly: tasks that write to it wait, and do not spin.
contract "HalfClosedPeer", both_ways: true do
  waits = {
    "write" => ->(socket) { socket.write("x") },
    "wait_writable" => ->(socket) { socket.wait_writable },
    "select" => ->(socket) { IO.select(nil, [socket]) },
    "urgent_data" => ->(socket) { IO.select(nil, nil, [socket], 0.2) }
  }
  waits.each do |name, wait|
    %w[tcp unix].each do |kind|
      define_method("test_#{name}_on_#{kind}") do
        reactor do
          ours, theirs = stream_pair(kind)
          filled = fill(ours)
          theirs.shutdown(:WR)
          waiting = go { wait.call(ours) }

          others = 0
          assert_no_spinning { 10.times { sleep(0.01) && others += 1 } }

          assert_equal(10, others)
          drain(theirs, filled)
          waiting.value
        end
      end
    end
  end
end
