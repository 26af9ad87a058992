# frozen_string_literal: true

require "socket"

module Bench
  # The price of connecting by name: TCPSocket.new("localhost", port) against TCPSocket.new("127.0.0.1", port), one
  # after another and at once. How much a system knows of localhost differs: see the line "hosts" of the report.
  # BENCH_NAME and BENCH_ADDRESS in the environment name another host (of this machine).
  module ConnectNames
    ADDRESS = ENV.fetch("BENCH_ADDRESS", "127.0.0.1")
    NAME = ENV.fetch("BENCH_NAME", "localhost")
    SOMAXCONN = "/proc/sys/net/core/somaxconn"
    # Not all of it: the kernel counts a little differently.
    BACKLOG = (File.exist?(SOMAXCONN) ? Integer(File.read(SOMAXCONN)) : 128).clamp(64, 4096) / 2

    class << self
      # Connects to a server of its own, whose backlog holds the connections until they have been measured.
      def connect(host, number)
        port = server.local_address.ip_port
        one = -> { TCPSocket.new(host, port).close }
        made = 0
        until made == number
          some = (number - made).clamp(..BACKLOG)
          yield some, one
          some.times { server.accept.close } # each has come: whoever connects waits for that
          made += some
        end
        made
      end

      # What the system says of the name, and how long it takes to say that there is no IPv6 address, or which.
      def hosts
        found = [nil, :INET, :INET6].map do |family|
          started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          addresses = begin
            Addrinfo.getaddrinfo(NAME, nil, family, :STREAM).map(&:ip_address).join(" ")
          rescue SocketError
            "no address"
          end
          format("%s (%.1f ms)", addresses, (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000)
        end
        format("#{NAME} is %s; IPv4 alone: %s; IPv6 alone: %s", *found)
      end

      private

      def server = @server ||= TCPServer.new(ADDRESS, 0).tap { |server| server.listen(BACKLOG * 2) }
    end

    Bench.group("connect_names", "Connecting by name and by address",
                peers: %w[heddle threads async], rounds: 15, share: true, keep: true, own: "by address",
                figures: %i[cpu wall], setup: ->(**) { [{}, { "hosts" => hosts }] }) do
      { "sequence" => "one after another", "at_once" => "at once" }.each do |way, words|
        { "address" => ADDRESS, "name" => NAME }.each do |kind, host|
          Bench.row("connect_#{way}_#{kind}", "connect by #{kind}, #{words}",
                    unit: "connection", operations: 1000, seconds: 1.0, figure: :wall, batch: "connect_names",
                    base: "connect_#{way}_address", goal: ({ "heddle" => 2 } if kind == "name"),
                    expect: ->(n) { n }) do |peer, n|
            connect(host, n) do |number, one|
              next peer.run { peer.measure { number.times { one.call } } } if way == "sequence"

              peer.measure { peer.run { number.times { peer.spawn(&one) } } }
            end
          end
        end
      end
    end
  end
end
