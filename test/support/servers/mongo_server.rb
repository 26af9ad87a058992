# frozen_string_literal: true

require "support/http_server"

module TestSupport
  # As much of MongoDB's protocol as a client needs for commands. It answers a command with the field "number" of the
  # command, after the "seconds" that it names.
  class MongoServer < HttpServer
    HELLO = { ismaster: true, isWritablePrimary: true, helloOk: true, maxBsonObjectSize: 16_777_216,
              maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000, minWireVersion: 0, maxWireVersion: 21,
              readOnly: false }.freeze
    QUERY = 2004
    REPLY = 1
    MESSAGE = 2013
    private_constant :HELLO, :QUERY, :REPLY, :MESSAGE

    private

    def respond(socket, _)
      length, id, _, kind = socket.read(16)&.unpack("l<4")
      return unless length

      command = document(socket.read(length - 16), kind)
      answer = BSON::Document.new(answer_to(command)).to_bson.to_s
      body = kind == QUERY ? [8, 0, 0, 1].pack("l<q<l<l<") + answer : [0, 0].pack("L<C") + answer
      socket.write([body.bytesize + 16, 0, id, kind == QUERY ? REPLY : MESSAGE].pack("l<4") + body)
    end

    # A query begins with flags, the name of a collection and two numbers. A message has flags and the kind of its part.
    def document(bytes, kind)
      start = kind == QUERY ? bytes.index("\0", 4) + 9 : 5
      BSON::Document.from_bson(BSON::ByteBuffer.new(bytes.byteslice(start..)))
    end

    def answer_to(command)
      return { **HELLO, localTime: Time.now, ok: 1.0 } if command.keys.first.match?(/\A(hello|ismaster)\z/i)
      return { ok: 1.0 } unless command.key?("number")

      wait_for_the_end_of_a_pause
      sleep(command["seconds"])
      { number: command["number"], text: "x" * command.fetch("size", 0), ok: 1.0 }
    end
  end
end
