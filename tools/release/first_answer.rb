# frozen_string_literal: true

# The first thing that a program does with a Heddle that was just installed: a server and a client in one thread.
require "heddle"
require "net/http"

raise "not the gem: #{Heddle.method(:run).source_location.first}" unless Gem.loaded_specs.key?("heddle")

answer = Heddle.run do
  server = TCPServer.new("127.0.0.1", 0)
  Heddle.spawn(background: true) do
    client = server.accept
    client.readpartial(1000)
    client.write("HTTP/1.0 200 OK\r\n\r\nhere")
    client.close
  end
  Net::HTTP.get("127.0.0.1", "/", server.local_address.ip_port)
end
scheduler = Heddle.backends.find { |backend| backend[:available] }
puts "#{answer}: Heddle #{Heddle::VERSION}, Ruby #{RUBY_VERSION}, #{RUBY_PLATFORM}, #{scheduler[:name]}"
