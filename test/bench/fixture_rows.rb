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

# The figures of the threads' rounds are these, and no times. The warm-up takes one.
Bench.group("goals", "rows with a goal", peers: %w[plain threads], share: true, keep: true, best: true) do
  { "keeps" => [150, 150, 150], "wavers" => [150, 190, 300] }.each do |name, figures|
    turns = figures.cycle
    turns.next
    Bench.row(name, "a goal", unit: "turn", operations: 1, figure: :bytes, goal: { "threads" => 2 }) do |peer, _|
      peer.found[:bytes] = peer.is_a?(Bench::PlainAdapter) ? 100 : turns.next
      1
    end
  end
end
