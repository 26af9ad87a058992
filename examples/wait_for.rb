# frozen_string_literal: true

# Waits until all of the given services accept connections, but not longer than you allow. Use it in scripts, for
# example to start a program after its database.
#
#   ruby examples/wait_for.rb [--seconds 30] [HOST:PORT ...]
#
# The exit status is 0 when all services accept connections, and 1 when the time is over.

require "heddle"
require "optparse"
require "socket"

PAUSE = 0.2 # seconds between two tries

def there?(host, port)
  Socket.tcp(host, port, connect_timeout: 2, resolv_timeout: 2, &:close)
  true
rescue SystemCallError, SocketError, IO::TimeoutError
  false
end

seconds = 30
usage = OptionParser.new("usage: ruby wait_for.rb [--seconds 30] [HOST:PORT ...]") do |options|
  options.on("--seconds SECONDS", Float) { |value| seconds = value }
end
begin
  usage.parse!
rescue OptionParser::ParseError => e
  abort "#{e.message}\n#{usage.banner}"
end
services = ARGV.empty? ? %w[localhost:5432 localhost:6379] : ARGV

$stdout.sync = true
missing = services.dup
begin
  Heddle.scope(deadline: seconds) do |scope|
    services.each do |service|
      scope.spawn do
        host, _, port = service.rpartition(":")
        sleep(PAUSE) until there?(host.delete("[]"), port)
        puts "#{service} is there"
        missing.delete(service)
      end
    end
  end
rescue Heddle::TimeoutError
  abort "after #{seconds} s still missing: #{missing.join(", ")}"
rescue Interrupt
  abort "ended by Ctrl-C"
end
