# frozen_string_literal: true

# One thread without a scheduler, for the groups that compare Heddle with no Heddle: in plain Ruby, with Heddle loaded,
# and after Heddle has run (only then Ruby's methods are replaced).
Bench.peer("plain", default: false) { Bench::PlainAdapter.new }

load = lambda do
  $LOAD_PATH.unshift(File.expand_path("../lib", Bench::ROOT))
  require "heddle"
end

Bench.peer("loaded", prepare: Bench.peers["heddle"]&.prepare, default: false) do
  load.call
  Bench::PlainAdapter.new
end

used = false
Bench.peer("used", prepare: Bench.peers["heddle"]&.prepare, default: false) do
  load.call
  used ||= Heddle.run { true }
  Bench::PlainAdapter.new
end
