# frozen_string_literal: true

# What the servers of bench/web_servers.rb serve.
require "digest"

LARGE = ["x" * 65_536].freeze
PLAIN = { "content-type" => "text/plain" }.freeze

# An event every 100 ms, with the time at which it was sent.
def events(stream)
  loop do
    stream.write("data: #{Process.clock_gettime(Process::CLOCK_MONOTONIC)}\n\n")
    sleep(0.1)
  end
rescue SystemCallError, IOError
  nil # the client has gone
ensure
  stream.close
end

# Computes for 1 ms, as a small action does.
def compute
  ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.001
  nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
end

# Computes the same each time, for about 200 ms with YJIT: the time that other requests take meanwhile does not count.
# As a method of this file, which is one of a single object, YJIT would make it four times slower.
module Slow
  def self.fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

  def self.compute = 2000.times { fib(20) }
end

def digest(input)
  digest = Digest::SHA256.new
  while (part = input.read(16_384))
    digest << part
  end
  digest.hexdigest
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/wait" then sleep(0.01) && [200, PLAIN.dup, ["Hello, world!"]]
  when "/compute" then compute || [200, PLAIN.dup, ["Hello, world!"]]
  when "/slow" then Slow.compute && [200, PLAIN.dup, ["Hello, world!"]]
  when "/upload" then [200, PLAIN.dup, [digest(env["rack.input"])]]
  when "/large" then [200, PLAIN.dup, LARGE]
  when "/events" then [200, { "content-type" => "text/event-stream" }, method(:events)]
  else [200, PLAIN.dup, ["Hello, world!"]]
  end
end)
