# frozen_string_literal: true

module TestSupport
  # A client of HTTP/2 for tests: it sends the frames of its caller, right or wrong, and gathers what comes back.
  # In a test of RackServer: include TestSupport::HTTP2Client
  module HTTP2Client
    TYPES = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, push: 5, ping: 6, goaway: 7, window: 8,
              continuation: 9, unknown: 0x42 }.freeze
    END_STREAM = 1
    ACK = 1
    END_HEADERS = 4
    PADDED = 8

    # What came back for a stream. +reset+: the code with which it was reset.
    Reply = Struct.new(:status, :headers, :body, :ended, :reset, :interim)

    # A connection.
    class Session
      # @return [Array<Array(Integer, Integer)>] of the GOAWAY frames: the last stream, the code
      attr_reader :goaways
      # @return [Array<Array(Integer, Integer, Integer, String)>] type, flags, stream and payload of all frames
      attr_reader :frames
      attr_reader :io
      # @return [Protocol::HPACK::Context] of the header fields that come
      attr_reader :decoder

      # @param io [IO]
      # @param settings [Hash{Integer => Integer}]
      # @param greet [Boolean] whether it begins as it should
      def initialize(io, settings: {}, greet: true)
        @io = io
        @encoder = ::Protocol::HPACK::Context.new
        @decoder = ::Protocol::HPACK::Context.new
        @replies = {}
        @goaways = []
        @frames = []
        @looked_at = 0
        @next_id = 1
        return unless greet

        io.write(::Protocol::HTTP2::CONNECTION_PREFACE)
        send_frame(:settings, 0, 0, settings.flat_map { |key, value| [key, value] }.pack("nN" * settings.size))
        wait_for(:settings, 0)
      end

      # @param type [Symbol, Integer]
      def send_frame(type, flags, id, payload = "")
        @io.write(frame(type, flags, id, payload))
      end

      # @return [String] its bytes
      def frame(type, flags, id, payload = "")
        size = payload.bytesize
        [size >> 16, size & 0xffff, TYPES.fetch(type, type), flags, id].pack("CnCCN") + payload.b
      end

      # @return [String] a block of header fields
      def block(fields)
        ::Protocol::HPACK::Compressor.new(String.new, @encoder).encode(fields)
      end

      # @return [Array] the fields of a usual request
      def fields(path = "/", method: "GET", **more)
        [[":method", method], [":scheme", "http"], [":path", path], [":authority", "localhost"]] +
          more.map { |name, value| [name.to_s.tr("_", "-"), value] }
      end

      # Sends the head of a request, and its body if it has one.
      # @return [Integer] its stream
      def request(path = "/", body: nil, open: false, fields: nil, **)
        id = @next_id
        @next_id += 2
        fields ||= fields(path, method: body || open ? "POST" : "GET", **)
        send_frame(:headers, END_HEADERS | (body || open ? 0 : END_STREAM), id, block(fields))
        data(id, body, last: !open) if body
        id
      end

      def data(id, bytes, last: false)
        pieces = bytes.empty? ? [""] : bytes.scan(/.{1,16384}/mn)
        pieces.each_with_index do |piece, i|
          send_frame(:data, last && i == pieces.size - 1 ? END_STREAM : 0, id, piece)
        end
      end

      # @return [Reply] to this stream, when it has ended
      def reply(id)
        read_frame until @replies[id]&.ended
        @replies[id]
      end

      # @return [Reply] as far as it has come, with at least this number of bytes of its body
      def part(id, size)
        read_frame until @replies[id] && @replies[id].body.bytesize >= size
        @replies[id]
      end

      def get(path = "/", **) = reply(request(path, **))

      # Reads until the end of the connection.
      # @return [Integer, nil] the code of the last GOAWAY
      def finish
        loop { read_frame }
      rescue EOFError, Errno::ECONNRESET
        @goaways.last&.last
      end

      # The next frame of this type after the one of the last call.
      # @return [String] its payload
      def wait_for(type, flags = nil)
        loop do
          read_frame if @looked_at == @frames.size
          found, found_flags, _, payload = @frames[@looked_at]
          @looked_at += 1
          return payload if found == TYPES.fetch(type) && (flags.nil? || found_flags == flags)
        end
      end

      def close = @io.close

      # @return [Array(Integer, Integer, Integer, String)]
      def read_frame
        head = @io.read(9)
        raise EOFError unless head&.bytesize == 9

        high, low, type, flags, id = head.unpack("CnCCN")
        length = (high << 16) | low
        payload = length.zero? ? "" : @io.read(length)
        take(type, flags, id, payload)
        @frames << [type, flags, id, payload]
        @frames.last
      end

      private

      def take(type, flags, id, payload)
        case type
        when 0 then reply_of(id).body << payload
        when 1 then take_headers(id, payload)
        when 3 then take_reset(id, payload)
        when 4 then send_frame(:settings, ACK, 0) unless flags == ACK
        when 7 then @goaways << payload.unpack("NN")
        end
        reply_of(id).ended = true if type < 2 && flags.anybits?(END_STREAM)
      end

      def take_headers(id, payload)
        headers = ::Protocol::HPACK::Decompressor.new(payload, @decoder).decode.to_h
        reply = reply_of(id)
        return reply.headers.update(headers) unless headers.key?(":status") # (trailers)

        status = Integer(headers.delete(":status"))
        return reply.interim << status if status < 200

        reply.status = status
        reply.headers = headers
      end

      # (An answer that was complete stays so.)
      def take_reset(id, payload)
        reply = reply_of(id)
        reply.reset = payload.unpack1("N")
        reply.ended = true
      end

      def reply_of(id) = @replies[id] ||= Reply.new(nil, {}, +"", false, nil, [])
    end

    def setup
      super
      missing = Clients.load("protocol-http2", "protocol/http2")
      skip(missing) if missing
      require "protocol/http2/framer"
      require "protocol/hpack"
    end

    # @return [Session] on a new connection
    def http2(io = connect, **) = Session.new(io, **)
  end
end
