# frozen_string_literal: true

require "pty"
require "socket"

module TestSupport
  # IOs of all kinds in all the states that poll(2) and select(2) distinguish. Each is made by a lambda that is given a
  # folder, and returns the IO and the objects that must be kept open beside it.
  module IOStates
    module_function

    def all = { **pipes, **fifos, **unix_sockets, **tcp_sockets, **other_sockets, **terminals, **files }

    def fill(io)
      nil until io.write_nonblock("x" * 65_536, exception: false) == :wait_writable
      nil until io.write_nonblock("x", exception: false) == :wait_writable
    end

    def with(made)
      yield(*made)
      made
    end

    def pipes
      {
        "pipe, nothing to read" => ->(_) { IO.pipe },
        "pipe, data" => ->(_) { with(IO.pipe) { |_, writer| writer.write("x") } },
        "pipe, end" => ->(_) { with(IO.pipe) { |_, writer| writer.close } },
        "pipe, data and end" => ->(_) { with(IO.pipe) { |_, writer| writer.write("x") && writer.close } },
        "pipe, room" => ->(_) { IO.pipe.reverse },
        "pipe, full" => ->(_) { with(IO.pipe.reverse) { |writer,| fill(writer) } },
        "pipe, no reader" => ->(_) { with(IO.pipe.reverse) { |_, reader| reader.close } },
        "pipe, full, no reader" => ->(_) { with(IO.pipe.reverse) { |writer, reader| fill(writer) || reader.close } }
      }
    end

    def fifo(folder)
      path = File.join(folder, "fifo#{rand(1 << 60)}")
      File.mkfifo(path)
      path
    end

    def fifos
      nonblock = File::RDONLY | File::NONBLOCK
      {
        "fifo, never a writer" => ->(folder) { [File.open(fifo(folder), nonblock)] },
        "fifo, writer" => ->(folder) { path = fifo(folder) and [File.open(path, nonblock), File.open(path, "w")] },
        "fifo, writer gone" => lambda do |folder|
          path = fifo(folder)
          [File.open(path, nonblock)].tap { IO.for_fd(IO.sysopen(path, "w")).close }
        end
      }
    end

    def unix_sockets
      {
        "unix, idle" => ->(_) { UNIXSocket.pair },
        "unix, data" => ->(_) { with(UNIXSocket.pair) { |_, other| other.write("x") } },
        "unix, closed by the peer" => ->(_) { with(UNIXSocket.pair) { |_, other| other.close } },
        "unix, data, closed by the peer" => lambda do |_|
          with(UNIXSocket.pair) { |_, other| other.write("x") && other.close }
        end,
        "unix, reset" => ->(_) { with(UNIXSocket.pair) { |one, other| one.write("x") && other.close } },
        "unix, half closed by the peer" => ->(_) { with(UNIXSocket.pair) { |_, other| other.close_write } },
        "unix, half closed for reading by the peer" => ->(_) { with(UNIXSocket.pair) { |_, other| other.close_read } },
        "unix, shut for reading" => ->(_) { with(UNIXSocket.pair) { |one,| one.shutdown(:RD) } },
        "unix, shut for writing" => ->(_) { with(UNIXSocket.pair) { |one,| one.shutdown(:WR) } },
        "unix, shut" => ->(_) { with(UNIXSocket.pair) { |one,| one.shutdown(:RDWR) } },
        "unix, full" => ->(_) { with(UNIXSocket.pair) { |one,| fill(one) } },
        "unix, full, shut" => ->(_) { with(UNIXSocket.pair) { |one,| fill(one) || one.shutdown(:RDWR) } },
        "unix, full, closed by the peer" => ->(_) { with(UNIXSocket.pair) { |one, other| fill(one) || other.close } }
      }
    end

    def tcp
      server = TCPServer.new("127.0.0.1", 0)
      one = TCPSocket.new("127.0.0.1", server.addr[1])
      [one, server.accept, server]
    end

    # What the peer has done takes a moment to arrive.
    def tcp_that(arrived = :wait_readable)
      made = tcp
      yield(*made)
      made.first.public_send(arrived, 5)
      made
    end

    def tcp_sockets
      {
        "tcp, idle" => ->(_) { tcp },
        "tcp, data" => ->(_) { tcp_that { |_, other| other.write("x") } },
        "tcp, closed by the peer" => ->(_) { tcp_that { |_, other| other.close } },
        "tcp, half closed by the peer" => ->(_) { tcp_that { |_, other| other.close_write } },
        "tcp, reset" => lambda { |_|
          tcp_that do |_, other|
            other.setsockopt(Socket::Option.linger(true, 0)) && other.close
          end
        },
        "tcp, urgent data" => ->(_) { tcp_that(:wait_priority) { |_, other| other.send("!", Socket::MSG_OOB) } },
        "tcp, urgent and plain data" => lambda do |_|
          tcp_that { |one, other| other.send("x!", Socket::MSG_OOB) && one.wait_priority(5) }
        end,
        "tcp, shut for reading" => ->(_) { tcp_that { |one,| one.shutdown(:RD) } },
        "tcp, shut for writing" => ->(_) { with(tcp) { |one,| one.shutdown(:WR) } },
        "tcp, shut" => ->(_) { tcp_that { |one,| one.shutdown(:RDWR) } },
        "tcp, shut by both" => ->(_) { tcp_that { |one, other| one.shutdown(:WR) && other.close } },
        "tcp, full" => ->(_) { with(tcp) { |one,| fill(one) } },
        "tcp, full, half closed by the peer" => ->(_) { tcp_that { |one, other| fill(one) || other.close_write } }
      }
    end

    def udp_refused
      other = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
      one = UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", other.addr[1]) }
      other.close
      one.send("x", 0)
      one.wait_readable(5)
      [one]
    end

    def other_sockets
      {
        "server, idle" => ->(_) { [TCPServer.new("127.0.0.1", 0)] },
        "server, a connection" => lambda do |_|
          server = TCPServer.new("127.0.0.1", 0)
          [server, TCPSocket.new("127.0.0.1", server.addr[1])]
        end,
        "socket that is not connected" => ->(_) { [Socket.new(:INET, :STREAM)] },
        "udp, idle" => ->(_) { [UDPSocket.new] },
        "udp, refused" => ->(_) { udp_refused }
      }
    end

    def terminals
      {
        "master, idle" => ->(_) { PTY.open },
        "master, data" => ->(_) { with(PTY.open) { |master, slave| slave.syswrite("x") && master.wait_readable(5) } },
        "master, closed slave" => ->(_) { with(PTY.open) { |_, slave| slave.close } },
        "slave, idle" => ->(_) { PTY.open.reverse },
        "slave, data" => lambda do |_|
          with(PTY.open.reverse) { |slave, master| master.syswrite("x\n") && slave.wait_readable(5) }
        end,
        "slave, closed master" => ->(_) { with(PTY.open.reverse) { |_, master| master.close } }
      }
    end

    def files
      {
        "file" => ->(_) { [File.open(__FILE__)] },
        "null device" => ->(_) { [File.open(File::NULL, "r+")] },
        "folder" => ->(_) { [File.open(__dir__)] }
      }
    end
  end
end
