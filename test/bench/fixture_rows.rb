# frozen_string_literal: true

require_relative "../../bench/support/registry"
require_relative "../../bench/support/needs"

# What nobody has.
module NothingNeeded
  private

  def nothing = Bench::RealServer.program("no-such-program", install: false)
end
Bench::Needs.include(NothingNeeded)

Bench.row("fine", "a row that works", unit: "turn", operations: 9, expect: ->(n) { n }) do |peer, n|
  peer.run { 100_000.times { nil } }
  n
end

Bench.row("wrong", "a row whose result is wrong", unit: "turn", operations: 6, expect: ->(n) { n + 1 }) { |_, n| n }

Bench.row("crashes", "a row that raises", unit: "turn", operations: 1, expect: ->(n) { n }) { raise("no good") }

Bench.row("hangs", "a row that never ends", unit: "turn", operations: 1, expect: ->(n) { n }) do |peer, _|
  peer.run { Queue.new.pop(timeout: 60) }
end

Bench.row("differs", "a row whose result depends on the peer", unit: "turn", operations: 1) do |peer, _|
  peer.class.name
end

Bench.row("needy", "a row that needs what nobody has", unit: "turn", operations: 1, needs: %i[nothing]) { nil }

Bench.row("idles", "a row that does nothing for ever", unit: "turn", operations: 1) { |peer, _| peer.run { sleep } }
