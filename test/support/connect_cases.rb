# frozen_string_literal: true

# What TCPSocket.new and Socket.tcp do with names and options, a line for each case; under Heddle when that is loaded,
# else on plain Ruby. Both must say the same. Needs the names of ConnectTest (tcp_connect_test.rb).
require "fcntl"
require "socket"

# Keeps everything open until the end.
KEPT = [] # rubocop:disable Style/MutableConstant
TIMEOUTS = { connect_timeout: 0.12, resolv_timeout: 0.12, open_timeout: 0.12 }.freeze

def server(*hosts)
  port = 0
  hosts.each do |host|
    KEPT << TCPServer.new(host, port)
    port = KEPT.last.local_address.ip_port
  end
  port
end

# A port where connection attempts get no answer.
def silent_port(*hosts)
  port = 0
  hosts.each do |host|
    socket = Addrinfo.tcp(host, port).listen(0)
    port = socket.local_address.ip_port
    KEPT << socket
    loop do # until its queue is full
      KEPT << socket.local_address.then { |address| Socket.new(address.pfamily, :STREAM) }
      KEPT.last.connect_nonblock(socket.local_address, exception: false)
      break unless KEPT.last.wait_writable(0.2)
    end
  end
  port
end

PORTS = { v4: server("127.0.0.1"), both: server("127.0.0.1", "::1"), silent4: silent_port("127.0.0.1"),
          silent: silent_port("127.0.0.1", "::1"), closed: server("127.0.0.1") }.freeze
KEPT.pop.close # (of the last one)

def in_words(socket)
  local = socket.local_address.ip_address
  flags = [socket.sync, socket.binmode?, socket.external_encoding, socket.do_not_reverse_lookup, socket.close_on_exec?,
           socket.fcntl(Fcntl::F_GETFL).anybits?(File::NONBLOCK), socket.autoclose?, socket.timeout, socket.lineno]
  "#{socket.class} #{local} #{socket.remote_address.inspect_sockaddr} #{flags.join(" ")}"
ensure
  socket.close
end

# Inside of a rescue, for the cause.
def outcome
  raise "another"
rescue RuntimeError
  begin
    value = yield
    value.is_a?(BasicSocket) ? in_words(value) : value.inspect
  rescue StandardError => e
    "#{e.class}: #{e.message} #{e.error_code if e.respond_to?(:error_code)} #{e.cause.class}"
  end
end

class Subclass < TCPSocket; end

# (A Method object would be of the method that is there before the first scheduler.)
OPEN = { "new" => TCPSocket.method(:new), "tcp" => ->(*all, **rest, &b) { Socket.tcp(*all, **rest, &b) } }.freeze
CASES = OPEN.flat_map do |name, open|
  (RUBY_VERSION < "3.4" ? [{}] : [{}, { fast_fallback: false }]).flat_map do |options|
    slow = "slow-#{name}#{options.size}" # (each time another one: who asks for the same would get the same answer)
    cases = [
      ["one4", :v4], ["both", :both], ["both", :v4], ["slow4", :v4], ["one4", PORTS[:v4].to_s],
      ["one4", :closed], ["both", :closed], ["one4", :v4, nil, 0], [nil, :both], [nil, :closed], ["", :closed],
      ["127.1", :v4], ["one4", nil], ["127.0.0.1", "discard"], ["one4", "discard"],
      ["127.0.0.1", -1], ["::1", -1], ["127.0.0.1", "80x"],
      ["127.0.0.1", "discard", TIMEOUTS.slice(:connect_timeout)], ["127.0.0.1", :v4],
      ["127.0.0.1", :v4, TIMEOUTS.slice(:connect_timeout)],
      ["127.0.0.1", :silent, TIMEOUTS.slice(:connect_timeout)], ["127.0.0.1", :closed, { nonsense: 1 }],
      ["a\0b", :v4], ["a" * 2000, :v4], [1.5, :v4], ["one4", 1.5],
      ["one4"], ["one4", 1, 2, 3, 4], ["one4", "x" * 40],
      ["one4", :v4, TIMEOUTS.slice(:connect_timeout)], ["both", :both, TIMEOUTS.slice(:connect_timeout)],
      ["one4", :silent4, TIMEOUTS.slice(:connect_timeout)], ["both", :silent, TIMEOUTS.slice(:connect_timeout)],
      ["one4", :v4, { connect_timeout: -1 }], ["both", :both, { connect_timeout: nil, resolv_timeout: nil }],
      ["one4", :v4, TIMEOUTS.slice(:resolv_timeout)], ["one4", :v4, TIMEOUTS.slice(:open_timeout)],
      [slow, :v4, TIMEOUTS.slice(:open_timeout)], ["one4", :silent4, TIMEOUTS.slice(:open_timeout)],
      ["both", :silent, TIMEOUTS.slice(:open_timeout)], ["one4", :v4, TIMEOUTS], ["one4", :v4, { nonsense: 1 }]
    ]
    # The rest is where some Rubies fail themselves: no error_code, a TypeError, a timeout that is not heeded.
    unless name == "tcp" && RUBY_VERSION.start_with?("3.4")
      cases << ["one4", :v4, "127.0.0.2", 0] << ["both", :both, "one4", 0] << ["one4", :closed, "127.0.0.2", 0]
    end
    if name == "new"
      cases << ["none", :v4] << ["again", :v4] << ["nodata", :v4] << ["one4", :v4, "none", 0] << ["none\n", :v4]
      cases << ["127.0.0.1", :closed, "192.0.2.1", "discard"] << ["127.0.0.1", :closed, "127.0.0.1", -1]
      cases << ["one4", 2**70] << ["127.0.0.1", 2**70] << ["one4", :closed, "127.0.0.1", 2**70]
      cases << ["one4", :v4, "192.0.2.1", 0] << ["both", :both, "192.0.2.1", 0] << ["one4", :v4, "::1", 0]
    end
    cases << ["127.0.0.1", PORTS[:v4] + 65_536] << ["both", :both, "", 0] if name == "new"
    cases << ["#{slow}r", :v4, TIMEOUTS.slice(:resolv_timeout)] if RUBY_VERSION >= "4.0"
    cases.map { |arguments| [name, open, arguments, options] }
  end
end
CASES << ["subclass", Subclass.method(:new), ["both", :both], {}]
CASES << ["block", ->(*all) { TCPSocket.open(*all, &:class) }, ["both", :both], {}]
CASES << ["block", ->(*all) { Socket.tcp(*all, &:class) }, ["both", :both], {}]

run = lambda do
  CASES.each do |name, open, given, options|
    host, port, *rest = given
    options = options.merge(rest.pop) if rest.last.is_a?(Hash)
    arguments = (given.size == 1 ? given : [host, port, *rest]).map { |one| PORTS.fetch(one, one) }
    said = outcome { open.call(*arguments, **options) }
    PORTS.each { |label, number| said = said.gsub(number.to_s, label.to_s) }
    label = port.is_a?(Symbol) ? port : port.class # (a number would be another one each time)
    puts "#{name} #{host.inspect[0, 20]} #{[label, *rest, options].join(" ")}: #{said}"
  end
end
defined?(Heddle) ? Heddle.run(&run) : run.call
