# frozen_string_literal: true

# One row on one peer, in a process of its own: warm up, measure, check the result, write one line of JSON.
# People start bench/run.rb, which starts: child.rb ROW_FILE ROW PEER_FILE PEER OPERATIONS WARM_UP DESCRIPTOR

require_relative "support/registry"
require_relative "support/adapters"
require "json"

row_file, row_name, peer_file, peer_name, operations, warmup, descriptor = ARGV
operations = Integer(operations)
warmup = Integer(warmup)
answer = IO.for_fd(Integer(descriptor), "w")

require row_file
require peer_file
row = Bench.rows.fetch(row_name)
peer = Bench.peers.fetch(peer_name)

# Ten thousand sockets or pipes need more open files than most shells allow at first.
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)

peer.gems.each { |name| gem(name) }
adapter = peer.adapter.call
row.work.call(peer.adapter.call, warmup) if warmup > 0

GC.start
result = nil
all = Bench::Costs.of { result = row.work.call(adapter, operations) }
costs = adapter.measured || all

expected = row.expect.call(operations)
answer.puts(JSON.generate(
              status: result == expected ? "ok" : "wrong result",
              detail: result == expected ? nil : "#{result.inspect} in place of #{expected.inspect}"[0, 300],
              cpu: costs.cpu, wall: costs.wall, operations:, objects: costs.objects,
              result: result.inspect[0, 100],
              backend: adapter.respond_to?(:backend) ? adapter.backend.to_s : nil,
              version: peer.gems.first && Gem.loaded_specs.fetch(peer.gems.first).version.to_s
            ))
answer.flush
# Whatever the peer left running is not measured.
exit!(0)
