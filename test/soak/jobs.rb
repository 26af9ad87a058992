# frozen_string_literal: true

# Runs 50,000 jobs of Sidekiq in one process, and prints its memory after each 10,000: it must stay flat.
#
#   REDIS_URL=redis://127.0.0.1:6379/0 bin/ruby test/soak/jobs.rb [COUNT]

require "sidekiq"
require "heddle/sidekiq"

COUNT = Integer(ARGV.fetch(0, "50000"))
PART = COUNT / 5
DONE = Thread::Queue.new

# Waits, and asks Redis.
class Wait
  include Sidekiq::Job

  def perform(number)
    sleep(0.01)
    Sidekiq.redis { |redis| redis.call("PING") }
    DONE << number
  end
end

def memory = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i / 1024

Sidekiq.default_configuration.logger = Logger.new(nil)
Sidekiq::Client.push_bulk("class" => Wait, "args" => Array.new(COUNT) { |number| [number] })
engine = Sidekiq.configure_embed do |config|
  config.logger = Logger.new(nil)
  config.concurrency = 500
end
engine.run
sizes = Array.new(5) do |part|
  PART.times { DONE.pop }
  memory.tap { |size| puts format("%6d jobs: %d MB", (part + 1) * PART, size) }
end
engine.stop
abort("it grew from #{sizes[1]} to #{sizes[4]} MB") if sizes[4] > sizes[1] * 1.2
puts "flat"
