# frozen_string_literal: true

# Random operations, checked against what must happen: see rounds.rb and actor.rb.
#
#   HEDDLE_BACKEND=epoll ruby -Ilib test/fuzz/run.rb --seconds 3600
#   ruby -Ilib test/fuzz/run.rb --seed 1234 --rounds 1     repeats a round
#
# HEDDLE_VARIANT=assert takes the extension of build/assert/ (bin/build --variant assert).

root = File.expand_path("../..", __dir__)
$LOAD_PATH.unshift(File.join(root, "lib"), File.join(root, "test"))
variant = ENV.fetch("HEDDLE_VARIANT", "release")
$LOAD_PATH.unshift(File.join(root, "build", variant)) unless variant.empty? || variant == "release"

require "optparse"
require "heddle"
require "support/watchdog"
require "support/leaks"
require_relative "rounds"

Heddle.shared_io = :ignore # its actors share readers

options = { seed: Random.new_seed % 1_000_000_000, seconds: nil, rounds: nil, limit: 300, size: 12, slices: 0.3 }
OptionParser.new do |parser|
  parser.on("--seed N", Integer) { |value| options[:seed] = value }
  parser.on("--seconds N", Float, "how long (default 60, or as many rounds as said)") { |v| options[:seconds] = v }
  parser.on("--rounds N", Integer) { |value| options[:rounds] = value }
  parser.on("--only NAMES", "these actors: #{Fuzz::Actor.all.map(&:label).join(",")}") { |v| options[:only] = v }
  parser.on("--except NAMES", "not these actors") { |value| options[:except] = value }
  parser.on("--size N", Integer, "the most actors of a round (default 12)") { |value| options[:size] = value }
  parser.on("--limit N", Integer, "seconds that a round may take (default 300)") { |value| options[:limit] = value }
  parser.on("--no-abort", "no rounds that are ended by Thread#raise") { options[:abort] = false }
  parser.on("--slices PART", Float, "of the rounds have time slices of random lengths (default 0.3)") do |value|
    options[:slices] = value
  end
  parser.on("--stress", "with GC.stress, on and off") { options[:stress] = true }
  parser.on("--faults", "system calls fail now and then (with HEDDLE_VARIANT=faults)") { options[:faults] = true }
  parser.on("--plan", "only prints what the rounds would be") { options[:plan] = true }
  parser.on("--keep-going", "goes on after a failure") { options[:keep_going] = true }
end.parse!

seed = options[:seed]
backend = Heddle::Scheduler.new.then { |scheduler| scheduler.backend.tap { scheduler.close } }
seconds = options[:seconds] || (options[:rounds] ? Float::INFINITY : 60)
actors = Fuzz::Actor.all
actors = actors.select { |actor| options[:only].split(",").include?(actor.label) } if options[:only]
actors = actors.reject { |actor| options[:except].split(",").include?(actor.label) } if options[:except]
abort "there is no such actor" if actors.empty?

$stdout.sync = true
puts "--seed #{seed} (#{backend}, Ruby #{RUBY_VERSION}, pid #{Process.pid})"
# All the time, it would make a round last a minute: samples see as much, in more places.
if options[:stress]
  sampler = Thread.new do
    loop do
      GC.stress = true
      sleep(rand * 0.02)
      GC.stress = false
      sleep(rand * 0.02)
    end
  end
  sampler.name = "heddle fuzz sampler"
end
# What nobody may notice: see test/faults/.
if options[:faults]
  transfers = %w[recv send preadv2 pwritev2]
  waits = %w[epoll_wait epoll_pwait2 poll]
  transfers.each { |call| Heddle::Faults.set(call, Errno::EAGAIN::Errno, 10, 0, 0) }
  waits.each { |call| Heddle::Faults.set(call, Errno::EINTR::Errno, 10, 0, 0) }
  %w[io_uring_enter].each { |call| Heddle::Faults.set(call, Errno::EBUSY::Errno, 5, 0, 0) }
  %w[io_uring_setup].each { |call| Heddle::Faults.set(call, 0, 100, 8, 0) }
  %w[read pread].each { |call| Heddle::Faults.set(call, 0, 50, 100, 0) }
  transfers.each { |call| Heddle::Faults.set(call, 0, 30, 1000, 0) } if options[:seed].odd?
end
slow = options[:stress] ? 0.3 : 1.0
limit = options[:stress] ? options[:limit] * 2 : options[:limit]
rounds = Fuzz::Rounds.new(backend: backend, limit: limit, size: options[:size], slow: slow, actors: actors,
                          abort: options.fetch(:abort, true), slices: options[:slices])
if options[:plan]
  options.fetch(:rounds).times { |i| puts rounds.plan(seed + i) }
  exit
end
started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
played = failed = 0
cast = Hash.new(0)
while Process.clock_gettime(Process::CLOCK_MONOTONIC) - started < seconds && played != options[:rounds]
  begin
    rounds.play(seed + played)
  rescue Fuzz::Failure => e
    failed += 1
    puts "FAILED --seed #{seed + played} --rounds 1: #{e.message}"
    break unless options[:keep_going]
  end
  rounds.cast.each { |name| cast[name] += 1 }
  played += 1
end
puts "#{played} rounds, #{failed} failed; #{cast.sort.map { |name, count| "#{name} #{count}" }.join(", ")}"
exit!(1) if failed > 0
