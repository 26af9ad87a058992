# frozen_string_literal: true

# The process of a LateProxy: late_proxy_process.rb PORT TARGET

require "socket"

def hand_on(from, to)
  loop do
    bytes = from.readpartial(65_536)
    yield(bytes) if block_given?
    to.write(bytes)
  end
rescue SystemCallError, IOError
  [from, to].each(&:close)
end

def late(bytes)
  seconds = bytes[/late=([\d.]+)/, 1] and sleep(Float(seconds))
end

port, target = ARGV.map { |number| Integer(number) }
server = TCPServer.new("127.0.0.1", port)
server.listen(1000)
loop do
  client = server.accept
  behind = TCPSocket.new("127.0.0.1", target)
  [client, behind].each { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
  Thread.new { hand_on(client, behind) { |bytes| late(bytes) } }
  Thread.new { hand_on(behind, client) }
end
