# frozen_string_literal: true

# bin/test: takes 5 s, 0.9 of a core

require_relative "../test_helper"
require "stringio"
require "support/http2_client"
require "support/rack_server"

# The state of a server stays whole while time slices end in the midst of its requests.
contract "ServerSlicedRequests" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # Fields whose names stand in the table of header fields, and whose values differ.
  def fields(number) = Array.new(400) { |index| ["x-field-#{index}", "#{number}-#{index} value"] }.to_h

  # Another task that added to the table in the midst of a block would make it another one than the client has.
  def test_tables_of_header_fields
    serve(lint: false, time_slice: 0.001) { |env| [200, fields(env["PATH_INFO"]), ["done"]] }
    session = http2
    3.times do
      ids = Array.new(20) { |number| session.request("/#{number}") }

      ids.each_with_index do |id, number|
        assert_equal(fields("/#{number}"), session.reply(id).headers.except("date", "content-length"))
      end
    end
  end

  # No slice ends in libraries whose state the tasks of a connection share. Each of these takes some 50 ms at least.
  def test_libraries_with_common_state
    require "heddle/server/http2"
    many = Array.new(20_000) { |number| ["x-#{number}", "value"] }

    [[Protocol::HPACK::Compressor.new(String.new, Protocol::HPACK::Context.new), :encode, many],
     [Protocol::HTTP::Headers.new(many * 5), :to_h],
     [Protocol::HTTP1::Connection.new(StringIO.new), :write_headers, many * 5],
     [Protocol::HTTP2::Settings.new, :update, [[1, 4096]] * 200_000]].each do |receiver, name, *arguments|
      assert_equal(0, ticks_beside(receiver, name, arguments), "#{receiver.class}##{name}")
    end
  end

  # Each request is counted once, and none stays in the lists.
  def test_counts
    serve(time_slice: 0.001) { |env| text(200, compute(env["PATH_INFO"].size).to_s) }
    clients = Array.new(6) do
      Thread.new { connect.then { |socket| Array.new(10) { |number| get("/#{"x" * number}", socket).body } } }
    end

    assert_equal([Array.new(10) { |number| compute(number + 1).to_s }] * 6, clients.map(&:value))
    assert_equal([60, 0], @server.counts.then { |counts| [counts[:responses]["2xx"], counts[:requests]] })
  end

  # A task sends an early hint while another one begins with the answer: the hint is whole, or it is not sent.
  def test_early_hints
    serve(lint: false, time_slice: 0.001) do |env|
      hint = Array.new(2000) { |number| ["x-hint-#{number}", "a value"] }
      Heddle.spawn(isolated: true) { env["rack.early_hints"].call(hint) }
      compute(18)
      text
    end
    socket = connect
    10.times do
      socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
      heads = [socket.gets("\r\n\r\n")]
      heads << socket.gets("\r\n\r\n") if heads.first.start_with?("HTTP/1.1 103 ")

      assert_equal([2000], heads[..-2].map { |head| head.scan(/^x-hint-\d+: a value\r$/).size } | [2000])
      assert_equal(["HTTP/1.1 200 ", "hello"], [heads.last[0, 13], socket.read(5)])
    end
  end

  private

  # @return [Integer] how often another task has run during this call
  def ticks_beside(receiver, name, arguments)
    ticks = 0
    Heddle.run(backend:, time_slice: 0.001) do
      Heddle.spawn(background: true) { ticks += 1 while sleep(0.001) }
      Heddle.spawn do
        receiver.__send__(name, *arguments)
        ticks
      end.value
    end
  end

  def compute(number) = number < 2 ? number : compute(number - 1) + compute(number - 2)
end
