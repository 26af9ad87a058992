# frozen_string_literal: true

# IO#timeout beside no limit in one process, since two processes differ for other reasons; bench/memcached.rb starts it.
# Short turns in random order. Prints one line of JSON: how many times the CPU of no limit each turn with a limit took.
#
#   pair.rb PEER PORT ITERATIONS

require_relative "../support/registry"
require_relative "../support/adapters"
require "json"

peer_name, port, iterations = ARGV
require_relative "../peers/#{peer_name}"
adapter = Bench.peers.fetch(peer_name).adapter.call
require_relative "variants"

TURN = 10
measure = lambda do
  workloads = %w[none socket].to_h do |name|
    [name, Bench::Memcached::Workload.new(Bench::Memcached::VARIANTS.fetch(name), Integer(port))]
  end
  workloads.each_value { |workload| workload.run(10 * TURN) }
  ratios = Array.new((Integer(iterations) / TURN).clamp(1..)) do
    cpu = workloads.to_a.shuffle.to_h { |name, workload| [name, Bench::Costs.of { workload.run(TURN) }.cpu] }
    cpu["socket"] / cpu["none"]
  end
  puts(JSON.generate(ratios))
end
adapter.run { adapter.spawn { measure.call } }
