# frozen_string_literal: true

require_relative "../../bench/support/registry"
require_relative "../../bench/peers/heddle"

# Peers for the test of the guard: Heddle, as it is after a change that makes all that is measured so many times slower.
[1.6, 3.0].each do |factor|
  Bench.peer("heddle-slow-#{factor}", default: false) do
    adapter = Bench.peers.fetch("heddle").adapter.call
    slower = Module.new do
      define_method(:measure) do |&work|
        super() do
          used = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
          before = used.call
          work.call
          till = before + ((used.call - before) * factor)
          nil until used.call >= till
        end
      end
    end
    adapter.singleton_class.prepend(slower)
    adapter
  end
end
