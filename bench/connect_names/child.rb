# frozen_string_literal: true

# One implementation for bench/connect_names.rb, which starts it: reads lines "WAY HOST NUMBER" (WAY is sequence or
# at_once), answers each with a line of JSON: seconds of CPU and of time, and objects.
#
#   child.rb PEER_FILE PEER ADDRESS

require_relative "../support/registry"
require_relative "../support/adapters"
require "json"
require "socket"

# Connects to a server of its own, whose backlog holds the connections until they have been measured.
class ConnectNamesChild
  SOMAXCONN = "/proc/sys/net/core/somaxconn"
  # Not all of it: the kernel counts a little differently.
  BACKLOG = (File.exist?(SOMAXCONN) ? Integer(File.read(SOMAXCONN)) : 128).clamp(64, 4096) / 2

  def initialize(peer, address)
    Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
    peer.gems.each { |name| gem(name) }
    @version = peer.gems.first && Gem.loaded_specs.fetch(peer.gems.first).version.to_s
    @peer = peer
    @server = TCPServer.new(address, 0)
    @server.listen(BACKLOG * 2)
    @port = @server.local_address.ip_port
    @backend = @peer.adapter.call.then { |one| one.backend.to_s if one.respond_to?(:backend) }
  end

  def serve
    $stdout.sync = true
    $stdin.each_line do |line|
      way, host, number = line.split
      puts(JSON.generate(measure(way, host, Integer(number))))
    end
  end

  private

  def measure(way, host, number)
    total = Bench::Costs::Cost.new(0, 0, 0)
    left = number
    while left.positive?
      some = left.clamp(..BACKLOG)
      GC.start
      cost = send(way, host, some)
      total = Bench::Costs::Cost.new(*total.to_a.zip(cost.to_a).map(&:sum))
      accept(some)
      left -= some
    end
    { cpu: total.cpu, wall: total.wall, objects: total.objects, operations: number, version: @version,
      backend: @backend }
  end

  def sequence(host, number)
    adapter = @peer.adapter.call
    adapter.run { adapter.measure { number.times { TCPSocket.new(host, @port).close } } }
    adapter.measured
  end

  def at_once(host, number)
    adapter = @peer.adapter.call
    Bench::Costs.of do
      adapter.run { number.times { adapter.spawn { TCPSocket.new(host, @port).close } } }
    end
  end

  # (Each of them has come: whoever connects waits for that.)
  def accept(number) = number.times { @server.accept.close }
end

file, name, address = ARGV
require file
ConnectNamesChild.new(Bench.peers.fetch(name), address).serve
