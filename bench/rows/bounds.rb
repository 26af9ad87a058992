# frozen_string_literal: true

%w[tasks pipes network closes servers].each { |name| require_relative name }

module Bench
  # What the kernel and Ruby take alone for the operations that Heddle can hardly make quicker: the same work in one
  # thread, without a scheduler, in an order in which nothing ever has to wait.
  module Bounds
    CHUNK = ("#{"x" * 9}\n" * 6554)[-65_536..].freeze

    # name => the work, for a number of operations
    ALONE = {
      "spawn" => ->(n) { n.times { Fiber.new { nil }.resume } },
      "pipe" => lambda do |n|
        reader, writer = IO.pipe(binmode: true)
        buffer = String.new(capacity: 65_536)
        n.times { writer.write(CHUNK) && reader.readpartial(65_536, buffer) }
        [reader, writer].each(&:close)
      end,
      "open_close" => ->(n) { n.times { IO.pipe.each(&:close) } },
      "accept" => lambda do |n|
        server = TCPServer.new("127.0.0.1", 0)
        n.times do
          socket = TCPSocket.new("127.0.0.1", server.addr[1])
          server.accept.close
          socket.read(1)
          socket.close
        end
        server.close
      end,
      "postgres" => lambda do |n|
        one = Servers.connect_to_postgres
        n.times { |i| one.exec("SELECT #{i}").getvalue(0, 0) }
      end
    }.freeze

    Bench.group("bounds", "Beside the kernel and Ruby alone", rounds: 5, peers: %w[heddle-uring heddle-epoll plain]) do
      ALONE.each do |name, alone|
        row = Bench.rows.fetch(name)
        Bench.row("bound_#{name}", row.title, unit: row.unit, operations: row.operations, multiple: row.multiple,
                                              needs: row.needs, figure: row.figure) do |peer, n|
          peer.is_a?(PlainAdapter) ? alone.call(n) : row.work.call(peer, n)
          n
        end
      end
    end
  end
end
