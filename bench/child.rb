# frozen_string_literal: true

# Rows on one peer, in a process of its own: for each line with a row's file, its name and a number of operations it
# measures, checks the result and answers with a line, both in JSON. People start bench/run.rb, which starts:
# child.rb PEER_FILE PEER DESCRIPTOR

require_relative "support/registry"
require_relative "support/adapters"
require "json"
require "socket"

peer_file, peer_name, descriptor = ARGV
link = UNIXSocket.for_fd(Integer(descriptor))

require peer_file
peer = Bench.peers.fetch(peer_name)
peer.gems.each { |name| gem(name) }
version = peer.gems.first && Gem.loaded_specs.fetch(peer.gems.first).version.to_s
backend = nil
# How many objects there may be since the last collection without another one before a row.
FEW_OBJECTS = 10_000
collected = 0

# Ten thousand sockets or pipes need more open files than most shells allow at first.
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)

while (order = link.gets)
  row_file, name, operations = JSON.parse(order)
  require row_file
  row = Bench.rows.fetch(name)
  adapter = peer.adapter.call
  if GC.stat(:total_allocated_objects) - collected > FEW_OBJECTS
    GC.start
    collected = GC.stat(:total_allocated_objects)
  end
  result = nil
  all = Bench::Costs.of { result = row.work.call(adapter, operations) }
  costs = adapter.measured || all

  right = row.expect.nil? || result == (expected = row.expect.call(operations))
  backend ||= adapter.backend.to_s if adapter.respond_to?(:backend)
  link.puts(JSON.generate(
              status: right ? "ok" : "wrong result",
              detail: right ? nil : "#{result.inspect} in place of #{expected.inspect}"[0, 300],
              cpu: costs.cpu, wall: costs.wall, operations: adapter.done || operations, objects: costs.objects,
              found: adapter.found, result: result.inspect[0, 100], backend:, version:
            ))
end
# Whatever the peer left running is not measured.
exit!(0)
