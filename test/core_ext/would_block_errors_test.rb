# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/io/would_block"
require "support/certificate"

# The exceptions of *_nonblock are cheap, and but for the backtrace what plain Ruby raises.
contract "WouldBlockErrors" do
  include TestSupport::WouldBlock

  # [class, message]; the errno is the class's.
  again = "Resource temporarily unavailable - "
  readable = "IO::EAGAINWaitReadable"
  writable = "IO::EAGAINWaitWritable"
  expected = {
    read_pipe: [readable, "#{again}read would block"],
    read_unix: [readable, "#{again}read would block"],
    read_tcp: [readable, "#{again}read would block"],
    read_into_a_buffer: [readable, "#{again}read would block"],
    write_pipe: [writable, "#{again}write would block"],
    write_unix: [writable, "#{again}write would block"],
    recv: [readable, "#{again}recvfrom(2) would block"],
    recvfrom_socket: [readable, "#{again}recvfrom(2) would block"],
    recvfrom_udp: [readable, "#{again}recvfrom(2) would block"],
    recvmsg: [readable, "#{again}recvmsg(2) would block"],
    sendmsg: [writable, "#{again}sendmsg(2) would block"],
    accept_tcp: [readable, "#{again}accept(2) would block"],
    accept_unix: [readable, "#{again}accept(2) would block"],
    accept_socket: [readable, "#{again}accept(2) would block"],
    connect: ["IO::EINPROGRESSWaitWritable", "#{Errno::EINPROGRESS.new.message} - connect(2) would block"],
    read_ssl: ["OpenSSL::SSL::SSLErrorWaitReadable", "read would block"],
    write_ssl: ["OpenSSL::SSL::SSLErrorWaitWritable", "write would block"],
    connect_ssl: ["OpenSSL::SSL::SSLErrorWaitReadable", "read would block"],
    accept_ssl: ["OpenSSL::SSL::SSLErrorWaitReadable", "read would block"]
  }

  expected.each do |name, (class_name, message)|
    define_method("test_#{name}") do
      [reactor { would_block(name) }, would_block(name)].each do |error|
        assert_equal([class_name, message], [error.class.name, error.message])
        assert_equal(error.class::Errno, error.errno) if error.is_a?(SystemCallError)

        assert_empty(error.singleton_methods)
        assert_empty(error.backtrace) unless reference?

        refute_predicate(error.backtrace, :frozen?)
        assert_operator(error, :is_a?, message.match?(/write|sendmsg|connect/) ? IO::WaitWritable : IO::WaitReadable)
      end
    end
  end

  def test_it_is_rescued_by_all_its_names_in_order
    [Errno::EAGAIN, SystemCallError, IO::WaitReadable, IO::EAGAINWaitReadable, StandardError].each do |name|
      rescued = begin
        pipe.first.read_nonblock(1)
      rescue EOFError, IO::WaitWritable, Errno::EPIPE
        :another
      rescue name
        :this
      end

      assert_equal(:this, rescued, name.inspect)
    end
  end

  def test_each_is_an_object_of_its_own
    reader, = pipe
    one, other = Array.new(2) { assert_raises(IO::WaitReadable) { reader.read_nonblock(1) } }

    refute_same(one, other)
    one.instance_variable_set(:@mine, 1)
    one.message << " changed"
    one.backtrace << "here:1"

    assert_empty(other.instance_variables)
    assert_equal("Resource temporarily unavailable - read would block", other.message)
    refute_includes(other.backtrace, "here:1")
  end

  def test_the_cause_is_what_is_being_rescued
    reader, = pipe
    error = begin
      begin
        raise(ArgumentError, "first")
      rescue ArgumentError
        reader.read_nonblock(1)
      end
    rescue IO::WaitReadable => e
      e
    end

    assert_equal("first", error.cause.message)
    assert_nil(assert_raises(IO::WaitReadable) { reader.read_nonblock(1) }.cause)
  end

  def test_it_is_raised_again_with_what_it_has
    error = would_block(:read_unix)
    error.set_backtrace(["there:1"])
    again = assert_raises(IO::WaitReadable) { raise(error) }

    assert_same(error, again)
    assert_equal(["there:1"], again.backtrace)
    assert_equal("other", error.exception("other").message)
  end

  def test_the_raise_event
    seen = []
    TracePoint.new(:raise) { |point| seen << point.raised_exception.class }.enable { would_block(:read_pipe) }

    assert_equal([IO::EAGAINWaitReadable], seen)
  end

  # With text in UTF-8, as programs have it, and by every way to make an exception.
  def test_an_error_that_a_program_raises_has_its_backtrace
    made = IO::EAGAINWaitReadable.new("read would block")
    errors = [
      assert_raises(IO::WaitReadable) { raise(IO::EAGAINWaitReadable, "read would block") },
      assert_raises(IO::WaitReadable) { raise(made) },
      assert_raises(IO::WaitReadable) { raise(IO::EAGAINWaitReadable) },
      assert_raises(IO::WaitReadable) { raise(Class.new(IO::EAGAINWaitReadable), "read would block".b) },
      assert_raises(IO::WaitReadable) { raise(OpenSSL::SSL::SSLErrorWaitReadable, "read would block") }
    ]

    errors.each { |error| assert_includes(error.backtrace.first, File.basename(__FILE__)) }
    assert_equal("Resource temporarily unavailable - read would block", errors.first.message)
    assert_equal(Errno::EAGAIN::Errno, errors.first.errno)
    assert_equal("Resource temporarily unavailable", errors[2].message)
    assert_equal("Resource temporarily unavailable @ place - x", IO::EAGAINWaitReadable.new("x", "place").message)
    assert_raises(ArgumentError) { IO::EAGAINWaitReadable.new("a", "b", "c") }
    assert_raises(TypeError) { IO::EAGAINWaitReadable.new(1) }
  end

  def test_other_errors_are_whole
    reader, writer = pipe
    writer.close

    assert_includes(assert_raises(EOFError) { reader.read_nonblock(1) }.backtrace.join, File.basename(__FILE__))
    assert_nil(reader.read_nonblock(1, exception: false))
    assert_raises(ArgumentError) { reader.read_nonblock(1, exception: 1) }
    reader.close

    assert_raises(IOError) { reader.read_nonblock(1) }
  end

  # read_nonblock of sockets is Heddle's own method: all that it does but wait.
  def test_a_socket_that_has_something_to_read
    reactor do
      one, other = socket_pair
      other.write("abcdef")
      buffer = +"before"

      assert_same(buffer, one.read_nonblock(2, buffer))
      assert_equal("ab", buffer)
      assert_equal(%w[cd ef], [one.read_nonblock(2), one.read_nonblock(2, exception: false)])
      assert_equal("", one.read_nonblock(0))
      assert_equal(:wait_readable, one.read_nonblock(1, exception: false))
      assert_raises(IO::EAGAINWaitReadable) { one.read_nonblock(1, exception: nil) }
      assert_raises(ArgumentError) { one.read_nonblock(1, nil, other: 1) }

      other.close

      assert_nil(one.read_nonblock(1, exception: false))
      error = assert_raises(EOFError) { one.read_nonblock(1) }

      assert_equal("end of file reached", error.message)
      refute_empty(error.backtrace)
    end
  end

  def test_an_empty_datagram_is_an_end_and_takes_no_other_with_it
    reactor do
      one, other = UNIXSocket.pair(:DGRAM).each { |socket| keep(socket) }
      ["", "next"].each { |text| other.send(text, 0) }

      assert_raises(EOFError) { one.read_nonblock(10) }
      assert_equal("next", one.read_nonblock(10))
    end
  end

  def test_connect_says_when_it_is_connected
    server = tcp_server
    socket = keep(Socket.new(:INET, :STREAM))
    address = server.local_address.to_sockaddr
    assert_raises(IO::EINPROGRESSWaitWritable) { socket.connect_nonblock(address) }
    socket.wait_writable
    socket.connect_nonblock(address, exception: false)
    error = assert_raises(Errno::EISCONN) { socket.connect_nonblock(address) }

    assert_match(/ - connect\(2\) for 127.0.0.1:\d+\z/, error.message)
    refute_empty(error.backtrace)
  end

  def test_without_an_exception
    one, other = socket_pair

    assert_equal(:wait_readable, one.read_nonblock(1, exception: false))
    other.write("text")
    buffer = +"before"

    assert_same(buffer, one.read_nonblock(10, buffer))
    assert_equal("text", buffer)
  end

  def test_backtraces_on_demand
    heddle_only("always has them")
    Heddle.would_block_backtraces = true

    assert(Heddle.would_block_backtraces)
    %i[read_pipe read_unix read_ssl connect].each do |name|
      assert_includes(would_block(name).backtrace.join, File.basename(__FILE__))
    end
    Heddle.would_block_backtraces = false

    assert_empty(would_block(:read_pipe).backtrace)
  ensure
    Heddle.would_block_backtraces = false unless reference?
  end

  def test_backtraces_with_debug
    heddle_only("always has them")
    out = run_command(*ruby_command, "-d", "-rheddle", "-e", <<~RUBY).out
      begin
        IO.pipe { |reader, _writer| reader.read_nonblock(1) }
      rescue IO::WaitReadable => e
        puts e.backtrace.last
      end
    RUBY

    assert_match(/\A-e:2:/, out)
  end

  def test_on_another_ractor
    out = run_command(*ruby_command, "-W0", *("-rheddle" unless reference?), "-e", <<~RUBY).out
      ractor = Ractor.new do
        20_000.times { IO.pipe.each(&:close) if _1 % 1000 == 0 }
        reader, _writer = IO.pipe
        Array.new(1000) { reader.read_nonblock(1) rescue $!.message }.uniq
      end
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY

    assert_equal("Resource temporarily unavailable - read would block\n", out)
  end

  def test_it_is_seen_as_in_plain_ruby
    heddle_only("has nothing to compare")
    plain, *others = [[], ["-rheddle"], ["-rheddle/would_block"], ["-ropenssl", "-rheddle"]].map do |options|
      outcome = run_ruby(TestSupport::WouldBlock::SEEN, heddle: false, options:)

      assert_predicate(outcome, :success?, outcome.err)
      outcome.out.gsub(/0x\h+/, "0x")
    end

    assert_operator(plain.lines.size, :>, 12)
    others.each { |other| assert_equal(plain, other) }
  end

  def test_it_can_be_had_alone
    heddle_only("is without")
    out = assert_script(<<~RUBY, heddle: false, options: ["-rheddle/would_block"])
      begin
        IO.pipe { |reader, _writer| reader.read_nonblock(1) }
      rescue IO::WaitReadable => e
        p e.backtrace, Heddle.respond_to?(:run)
      end
      require "heddle"
      p Heddle.run { 1 }
    RUBY

    assert_equal("[]\nfalse\n1\n", out)
  end

  def test_nobody_rescues_it
    heddle_only("says where")
    outcome = run_ruby("IO.pipe { |reader, _writer| reader.read_nonblock(1) }")

    refute_predicate(outcome, :success?)
    assert_match(/Resource temporarily unavailable - read would block \(IO::EAGAINWaitReadable\)$/, outcome.err)
  end

  def test_with_compaction
    errors = Array.new(100) { would_block(:read_pipe) }
    GC.compact if GC.respond_to?(:compact)

    assert_equal(["Resource temporarily unavailable - read would block"], errors.map(&:message).uniq)
    assert_equal("Resource temporarily unavailable - read would block", would_block(:read_pipe).message)
  end
end
