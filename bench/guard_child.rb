# frozen_string_literal: true

# The rows of the guard, counted in a process of its own, under strace where that can be had. The answer is a line of
# JSON. People start bench/guard.rb, which starts:
# guard_child.rb TRIES FILES_TO_LOAD

require_relative "support/counts"
require_relative "rows/guard"
require_relative "peers/heddle"
require "json"

adapter = Bench.peers.fetch("heddle").adapter.call.extend(Bench::Counts::Adapter)
tries = Integer(ARGV.shift)
ARGV.each { |path| require path }
backend = adapter.backend
GC.start
GC.disable
counts = Bench::Guard.rows.map { |row| Bench::Counts.of(row, adapter, tries) }
puts JSON.generate({ backend:, counts: })
