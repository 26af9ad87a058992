# frozen_string_literal: true

# bin/test: takes 3 s, 0.7 of a core

require "io/nonblock"
require_relative "../test_helper"
require "support/plain_ruby"

# The methods that only sockets have do what Ruby's own do, and wait in between.
contract "DirectSocket", both_ways: true do
  include TestSupport::PlainRuby

  # Each is given what was sent before: "a message", in a stream with the end behind it, else three times.
  receives = {
    "recv" => ->(io) { [io.recv(3), io.recv(100)] },
    "recv_without_flags" => ->(io) { io.recv(3, nil) },
    "recv_at_the_end" => ->(io) { [io.recv(100), io.recv(5)] },
    "the_end_leaves_the_string" => ->(io) { [io.recv(100), io.recv(5, 0, s = +"text"), s] },
    "recv_nothing" => ->(io) { io.recv(0) },
    "recv_less_than_nothing" => ->(io) { io.recv(-1) },
    "recv_by_no_number" => ->(io) { io.recv("3") },
    "recv_a_rounded_number" => ->(io) { io.recv(3.9) },
    "recv_no_number" => lambda(&:recv),
    "recv_of_four_arguments" => ->(io) { io.recv(1, 0, nil, 3) },
    "recv_with_a_peek" => ->(io) { [io.recv(3, Socket::MSG_PEEK), io.recv(3)] },
    "recv_with_an_odd_flag" => ->(io) { io.recv(3, "x") },
    "recv_into_a_string" => ->(io) { [io.recv(4, 0, s = +"äbcdefghi"), s] },
    "recv_into_a_shared_string" => ->(io) { [io.recv(9, 0, s = (t = "y" * 50).dup), s, t] },
    "recv_into_a_frozen_string" => ->(io) { io.recv(3, 0, "") },
    "recv_into_no_string" => ->(io) { io.recv(3, 0, :x) },
    "recv_after_ungetbyte" => ->(io) { io.ungetbyte(65) || io.recv(3) },
    "recv_of_a_closed_socket" => ->(io) { io.close || io.recv(1) },
    "recvfrom" => ->(io) { io.recvfrom(4) },
    "recvfrom_without_flags" => ->(io) { io.recvfrom(4, nil) },
    "recvfrom_into_a_string" => ->(io) { [io.recvfrom(4, 0, s = +"x"), s] },
    "recvfrom_no_number" => lambda(&:recvfrom),
    "recvfrom_after_ungetbyte" => ->(io) { io.ungetbyte(65) || io.recvfrom(3) },
    "recvfrom_of_a_closed_socket" => ->(io) { io.close || io.recvfrom(3) },
    "recvfrom_with_a_name" => ->(io) { (io.do_not_reverse_lookup = false) || io.recvfrom(3).first },
    "recvmsg" => ->(io) { io.recvmsg },
    "recvmsg_in_parts" => ->(io) { [io.recvmsg(4), io.recvmsg(100)] },
    "recvmsg_with_a_peek" => ->(io) { [io.recvmsg(4, Socket::MSG_PEEK), io.recvmsg(4)] },
    "recvmsg_with_rights" => ->(io) { io.recvmsg(4, 0, 100, scm_rights: true) },
    "recvmsg_by_no_number" => ->(io) { io.recvmsg("3") },
    "recvmsg_of_a_closed_socket" => ->(io) { io.close || io.recvmsg }
  }
  sends = {
    "send" => ->(io) { [io.send("é1", 0), io.send("", 0), io.send("\xFF".b, 0)] },
    "send_no_flags" => ->(io) { io.send("x") },
    "send_nil_flags" => ->(io) { io.send("x", nil) },
    "send_odd_flags" => ->(io) { io.send("x", "0") },
    "send_a_flag" => ->(io) { io.send("x", Socket::MSG_DONTROUTE) },
    "send_no_string" => ->(io) { io.send(:x, 0) },
    "send_what_is_to_be_converted" => ->(io) { io.send(Struct.new(:to_str).new("text"), 0) },
    "send_to_nobody" => ->(io) { io.send("x", 0, nil) },
    "send_to_a_bad_address" => ->(io) { io.send("x", 0, "nobody") },
    "send_to_no_address" => ->(io) { io.send("x", 0, 5) },
    "send_to_a_string" => ->(io) { io.send("x", 0, io.remote_address.to_sockaddr) },
    "send_to_an_address" => ->(io) { io.send("x", 0, io.remote_address) },
    "send_to_a_host" => ->(io) { io.send("x", 0, "127.0.0.1", io.remote_address.ip_port) },
    "send_of_a_closed_socket" => ->(io) { io.close || io.send("x", 0) },
    "send_after_the_end" => ->(io) { io.close_write && io.send("x", 0) },
    "sendmsg" => ->(io) { [io.sendmsg("x"), io.sendmsg("é", 0), io.sendmsg("", 0, nil)] },
    "sendmsg_to_an_address" => ->(io) { io.sendmsg("x", 0, io.remote_address) },
    "sendmsg_with_a_bad_control" => ->(io) { io.sendmsg("x", 0, nil, 5) },
    "sendmsg_of_a_closed_socket" => ->(io) { io.close || io.sendmsg("x") }
  }

  # An Addrinfo is recognised by the parts that do not change from one socket to the next; so is the port of a peer.
  def describe(value)
    case value
    when Addrinfo then [:address, value.afamily, value.socktype, value.protocol, value.ip? && value.ip_address]
    when Integer then value > 10_000 ? :port : value
    when Socket::UDPSource, Socket::AncillaryData then value.class
    else super
    end
  end

  %w[unix tcp udp].each do |kind|
    define_method("test_receives_of_#{kind}") do
      receives.each do |name, receive|
        expected, seen = in_both do |waits|
          receiver, sender = connection(kind)
          send = lambda do
            (kind == "udp" ? 3 : 1).times { sender.write("a message") }
            sender.close unless kind == "udp"
          rescue Errno::ECONNREFUSED, Errno::EPIPE
            nil # the receiver is closed
          end
          waits ? go { sleep(0.001) && send.call } : send.call
          outcome { receive.call(receiver) }
        end

        assert_equal([expected], [seen], name)
      end
    end

    define_method("test_sends_of_#{kind}") do
      sends.each do |name, send|
        expected, seen = in_both do
          sender, receiver = connection(kind)
          result = outcome { send.call(sender) }
          sender.close
          [result, outcome { receiver.read_nonblock(100, exception: false) }]
        end

        assert_equal([expected], [seen], name)
      end
    end
  end

  def datagrams = Array.new(2) { keep(Socket.new(:INET, :DGRAM)).tap { |io| io.bind(Addrinfo.udp("127.0.0.1", 0)) } }

  def test_sockets_that_are_not_connected
    expected, seen = in_both do |waits|
      one, other = datagrams
      send = -> { ["first", "", "third"].each { |text| other.send(text, 0, one.local_address) } }
      waits ? go { sleep(0.001) && send.call } : send.call
      [outcome { one.recvfrom(3) }, outcome { one.recvfrom(9, 0, +"x") }, outcome { one.recv(9) }]
    end

    assert_equal(expected, seen)
  end

  def receives_into = [->(io, string) { io.recv(99, 0, string) }, ->(io, string) { io.recvfrom(99, 0, string) }]

  # Plain Ruby has the string during the system call of a socket in blocking mode, and nobody may change it then.
  def test_the_string_is_locked_in_blocking_mode
    reactor do
      receives_into.each do |receive|
        one, other = datagrams
        one.nonblock = false
        string = +"x"
        waiting = go { receive.call(one, string) }
        settle
        other.send("first", 0, one.local_address)
        waiting.value
        waiting = go { receive.call(one, string) } # (it waits before it tries)
        settle

        assert_raises(RuntimeError) { string << "y" }
        other.send("here", 0, one.local_address)
        waiting.value

        assert_equal("here!", string << "!")
      end
    end
  end

  # A socket that does not block looks at the string when there is something.
  def test_the_string_may_change_else
    reactor do
      receives_into.each do |receive|
        one, other = datagrams
        string = "x" * 10
        waiting = go { receive.call(one, string) }
        settle
        string.replace("y" * 200)
        other.send("here", 0, one.local_address)
        waiting.value

        assert_equal("here", string)
      end
    end
  end

  def test_a_struck_receiver_unlocks_its_string
    heddle_only("cancel")
    one, other = datagrams
    one.nonblock = false
    string = +""
    Heddle.run(backend: backend) do
      task = Heddle.spawn { one.recv(9, 0, string) }
      task.wait(0.01)
      task.cancel.wait
      other.send("next", 0, one.local_address)

      assert_equal("next", one.recv(9, 0, string << "x"))
    end
  end

  def test_an_empty_datagram_is_no_end
    reactor do
      one, other = udp_pair
      go { 3.times { other.send("", 0) } }

      assert_equal(["", "", ""], [one.recv(9), one.recvfrom(9).first, one.recvmsg(9).first])
    end
  end

  def test_descriptors_are_passed_on
    reactor do
      one, other = socket_pair
      reader, writer = pipe
      go { other.sendmsg("here", 0, nil, Socket::AncillaryData.unix_rights(writer)) }
      text, _, _, control = one.recvmsg(10, 0, 200, scm_rights: true)
      received = keep(control.unix_rights.first)
      received.syswrite("sent")

      assert_equal(%w[here sent], [text, reader.readpartial(9)])
    end
  end

  def servers
    path = File.join(tempdir, "socket-#{rand(1 << 60)}")
    socket = keep(Socket.new(:INET, :STREAM))
    socket.bind(Addrinfo.tcp("127.0.0.1", 0)) && socket.listen(5)
    [keep(TCPServer.new("127.0.0.1", 0)), keep(UNIXServer.new(path)), socket]
  end

  # The visible properties of a socket that was accepted.
  def state(accepted)
    return accepted.map { |one| state(one) } if accepted.is_a?(Array)
    return describe(accepted) unless accepted.is_a?(IO)

    keep(accepted)
    [accepted.class, accepted.sync, accepted.binmode?, accepted.close_on_exec?, accepted.nonblock?,
     accepted.external_encoding, accepted.do_not_reverse_lookup, accepted.timeout, accepted.readpartial(5)]
  end

  def test_accept
    expected, seen = in_both do |waits|
      servers.map do |server|
        connect = lambda do
          keep(server.local_address.connect).write("hello")
        end
        waits ? go { sleep(0.001) && connect.call } : connect.call
        state(server.accept)
      end
    end

    assert_equal(expected, seen)
  end

  def test_accept_of_a_closed_server
    expected, seen = in_both { servers.map { |server| server.close || outcome { server.accept } } }

    assert_equal(expected, seen)
  end

  def test_accept_of_what_does_not_listen
    expected, seen = in_both { outcome { keep(Socket.new(:INET, :STREAM)).accept } }

    assert_equal(expected, seen)
  end

  # What an accept had to do says nothing of a read, which the socket refuses.
  def test_a_read_of_a_server_behind_an_accept
    expected, seen = in_both do |waits|
      servers.map do |server|
        connect = -> { keep(server.local_address.connect) }
        waits ? go { sleep(0.001) && connect.call } : connect.call
        accepted = server.accept
        keep(accepted.is_a?(Array) ? accepted.first : accepted)
        calls = [:read, :gets, :getc, [:readpartial, 1], [:recv, 1], :recvmsg]
        calls.map { |call| outcome { server.public_send(*call) }.first }
      end
    end

    assert_equal(expected, seen)
  end

  # It is refused at once, or returns nothing, also behind a read that had to wait.
  def test_what_needs_no_data_behind_a_read_that_waited
    calls = [->(io) { io.recv(-1) }, ->(io) { io.recv("x") }, ->(io) { io.recv(1, 0, "") },
             ->(io) { io.recv(1, 0, :x) }, ->(io) { io.recvmsg(-1) }, ->(io) { io.recvmsg("x") }, ->(io) { io.read(0) },
             ->(io) { io.readpartial(0) }]
    expected, seen = in_both do |waits|
      calls.map do |call|
        reader, writer = tcp_pair
        waits ? go { sleep(0.001) && writer.write("x") } : writer.write("x")
        reader.readpartial(1)
        outcome { call.call(reader) }
      end
    end

    assert_equal(expected, seen)
  end

  # A little fits in although the kernel does not call the socket, or the pipe, writable.
  def test_a_small_write_behind_one_that_waited
    reactor do
      [socket_pair, pipe.reverse].each do |writer, reader|
        size = 64
        size += writer.write_nonblock("x" * 4096, exception: false) while writer.wait_writable(0)
        writing = go { writer.write("y" * 10_000) }
        settle
        left = size + 10_000 - 64
        left -= reader.readpartial(left).bytesize until writing.finished? || (settle && writing.finished?)
        filled = 0
        filled += writer.write_nonblock("z" * 1000) while writer.wait_writable(0)
        small = go { writer.write("!") }
        settle

        assert_predicate(small, :finished?)
      end
    end
  end

  # Heddle makes the system call and the object by itself.
  def test_an_accepted_socket_is_as_one_of_ruby
    path = File.join(Dir.mktmpdir, "socket")
    expected, seen = in_both do
      [tcp_server, keep(UNIXServer.new(path))].map do |server|
        keep(server.is_a?(TCPServer) ? TCPSocket.new("127.0.0.1", server.addr[1]) : UNIXSocket.new(path))
        socket = keep(server.accept)
        File.delete(path) if server.is_a?(UNIXServer)
        %i[class sync binmode? external_encoding internal_encoding close_on_exec? nonblock? autoclose? tty?
           do_not_reverse_lookup timeout lineno].map { |property| socket.public_send(property) }
      end
    end

    assert_equal(expected, seen)
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end

  # Nobody else waits for a server in blocking mode, and it stays in that.
  def test_a_server_in_blocking_mode
    reactor do
      servers.each do |server|
        server.nonblock = false
        accepting = go { state(server.accept) }
        settle
        keep(server.local_address.connect).write("hello")

        assert_includes(accepting.value.flatten, "hello")
        refute_predicate(server, :nonblock?)
      end
    end
  end

  def test_accept_without_a_descriptor
    program = <<~RUBY
      server = TCPServer.new("127.0.0.1", 0)
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      Heddle.run do
        Heddle.spawn { sleep(0.001) }.wait
        Process.setrlimit(:NOFILE, server.fileno)
        server.accept
      rescue Errno::EMFILE => e
        print(e.message)
      end
    RUBY

    said = run_ruby(program, env: { "HEDDLE_BACKEND" => backend }).out

    assert_equal("#{Errno::EMFILE.new.message} - accept(2)", said)
  end

  # In blocking mode `send` gives the whole to the kernel, else what it takes at once.
  def test_much_is_sent
    reactor do
      one, other = socket_pair
      text = "text" * 500_000
      reading = go { other.read }
      first = one.send(text, 0)
      one.nonblock = false
      rest = one.send(text.byteslice(first..), 0)
      one.close

      assert_operator(first, :<, text.size)
      assert_equal([text.size, text], [first + rest, reading.value])
    end
  end

  def test_a_peer_that_has_gone
    sends = [->(io) { io.send("x", 0) }, ->(io) { io.sendmsg("x") }]
    sends.each do |send|
      expected, seen = in_both do
        one, other = socket_pair
        other.close
        outcome { send.call(one) }
      end

      assert_equal(expected, seen)
    end
  end

  def test_nobody_is_there
    receives = [->(io) { io.recv(5) }, ->(io) { io.recvfrom(5) }, ->(io) { io.recvmsg }, ->(io) { io.send("x", 0) }]
    receives.each do |receive|
      expected, seen = in_both do
        one, other = udp_pair
        other.close
        one.send("x", 0)
        outcome { receive.call(one) }
      end

      assert_equal([Errno::ECONNREFUSED, seen], [expected.first, expected])
    end
  end

  waits = {
    "recv" => ->(io, *) { io.recv(5) },
    "recvfrom" => ->(_, udp, _) { udp.recvfrom(5) },
    "recvmsg" => ->(io, *) { io.recvmsg },
    "send" => ->(io, *) { loop { io.send("x" * 100_000, 0) } },
    "sendmsg" => ->(io, *) { loop { io.sendmsg("x" * 100_000) } },
    "accept" => ->(_, _, server) { server.accept }
  }

  def all_kinds = [socket_pair.first, udp_pair.first, keep(TCPServer.new("127.0.0.1", 0))]

  waits.each do |name, wait|
    define_method("test_#{name}_with_io_timeout") do
      reactor do
        sockets = all_kinds.each { |io| io.timeout = 0.02 }
        error = assert_raises(IO::TimeoutError) { wait.call(*sockets) }

        assert_equal("Blocking operation timed out!", error.message)
      end
    end

    define_method("test_#{name}_is_closed_meanwhile") do
      reactor do
        sockets = all_kinds
        waiting = go { wait.call(*sockets) }
        settle
        sockets.each(&:close)

        assert_equal([IOError, "stream closed in another thread"],
                     [waiting.failure.class, waiting.failure.message])
      end
    end

    define_method("test_#{name}_in_a_timeout") do
      reactor do
        sockets = all_kinds

        assert_raises(Timeout::Error) { Timeout.timeout(0.02) { wait.call(*sockets) } }
      end
    end
  end

  # A task that is ended while it waits takes nothing with it.
  def test_no_message_is_lost
    heddle_only("cancel")
    one, other = udp_pair
    texts = []
    Heddle.run(backend: backend) do
      200.times do |number|
        task = Heddle.spawn { one.recv(10) }
        task.wait(0)
        other.send(number.to_s, 0) if number.even?
        task.cancel
        texts << task.value
      rescue Heddle::Cancelled
        other.send(number.to_s, 0) if number.odd?
        texts << one.recv(10)
      end
    end

    assert_equal(Array.new(200, &:to_s), texts)
  end

  # Who has a method of his own is asked.
  def test_methods_that_are_overridden
    loud = Class.new(UNIXSocket) do
      def send(text, *) = super(text.upcase, *)
      def recv(...) = super.reverse
    end
    reactor do
      one, other = loud.pair.each { |io| keep(io) }
      one.send("abc", 0)

      assert_equal("CBA", other.recv(10))
    end
  end

  def test_switched_off
    heddle_only("HEDDLE_WITHOUT")
    program = <<~RUBY
      one, other = UNIXSocket.pair
      Heddle.run do
        Heddle.spawn { 3.times { other.send(other.recv(100), 0) } }
        3.times { one.send("x", 0) && print(one.recv(100)) }
      end
      print(BasicSocket.private_method_defined?(:__heddle_direct_recv))
    RUBY
    env = { "HEDDLE_WITHOUT" => "direct_socket", "HEDDLE_BACKEND" => backend }

    assert_equal("xxxfalse", run_ruby(program, env: env).out)
    assert_equal("xxxtrue", run_ruby(program, env: env.merge("HEDDLE_WITHOUT" => "")).out)
  end
end
