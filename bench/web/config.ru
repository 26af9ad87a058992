# frozen_string_literal: true

# What the servers of bench/web_servers.rb serve.
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

run(lambda do |env|
  case env["PATH_INFO"]
  when "/wait" then sleep(0.01) && [200, PLAIN.dup, ["Hello, world!"]]
  when "/large" then [200, PLAIN.dup, LARGE]
  when "/events" then [200, { "content-type" => "text/event-stream" }, method(:events)]
  else [200, PLAIN.dup, ["Hello, world!"]]
  end
end)
