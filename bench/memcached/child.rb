# frozen_string_literal: true

# One variant of bench/memcached.rb in one way; bench/memcached.rb starts it. It reads lines with a number of
# iterations until there are no more, and answers each with a line of JSON: CPU seconds, real seconds, objects, and how
# many gets were right.
#
#   child.rb PEER VARIANT PORT

require_relative "../support/registry"
require_relative "../support/adapters"
require "json"

peer_name, variant_name, port = ARGV
require_relative "../peers/#{peer_name}"
peer = Bench.peers.fetch(peer_name)
peer.gems.each { |name| gem(name) }
adapter = peer.adapter.call
backend = adapter.backend if adapter.respond_to?(:backend)
require_relative "variants" # dalli comes after Heddle, as in a program
variant = Bench::Memcached::VARIANTS.fetch(variant_name)
versions = { version: peer.gems.first && Gem.loaded_specs.fetch(peer.gems.first).version.to_s, backend:,
             dalli: Dalli::VERSION }

serve = lambda do
  workload = Bench::Memcached::Workload.new(variant, Integer(port))
  while (line = $stdin.gets)
    right = nil
    cost = Bench::Costs.of { right = workload.run(Integer(line)) }
    puts(JSON.generate(cpu: cost.cpu, real: cost.wall, objects: cost.objects, right:, **versions))
  end
end
$stdout.sync = true
adapter.run { adapter.spawn { serve.call } }
