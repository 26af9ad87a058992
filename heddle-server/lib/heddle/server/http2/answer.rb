# frozen_string_literal: true

require "protocol/http2/stream"
require_relative "../answer"
require_relative "../answer/http_date"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Raised when the client has gone, or wants no answer any more.
      class Gone < IOError
        def initialize(message = "the client has gone, or wants no answer any more") = super
      end
      private_constant :Gone

      # The answer to a request of HTTP/2, which is sent on the stream of the request (RFC 9113, 8.1).
      #
      # @private
      class Answer < Server::Answer
        END_STREAM = ::Protocol::HTTP2::END_STREAM
        private_constant :END_STREAM

        # @return [Integer] bytes of the body that were sent
        attr_reader :sent

        # @param stream [Stream]
        # @param server [Server]
        # @param request [Request]
        def initialize(stream, server, request)
          super(server, request)
          @stream = stream
          @connection = stream.connection
          @sent = @waited = 0
          @torn = false
        end

        # @return [Boolean] whether the head was sent
        def answered? = !@status.nil?

        # Sends a part of the body, and waits where the windows of the client or the other streams leave no room.
        def send_chunk(chunk, last)
          @connection.perform { send_pieces(chunk, last) }
        end

        def send_end(trailers)
          @connection.perform do
            raise Gone if @stream.closed?

            flush
            @whole = true
            trailers.empty? ? @stream.send_data(nil, END_STREAM) : @stream.send_headers(trailers, END_STREAM)
          end
        end

        # Sends nothing, because the connection sends the frames. It raises an error if a write was interrupted: the
        # bytes of that write are missing in the answer.
        def flush
          raise IOError, "an earlier write to the client was interrupted" if @torn
        end

        private

        def make
          super
        ensure
          # The stream is still open if the application has not read all of the body, or if its task was ended in the
          # midst of the answer.
          reset(@whole ? ::Protocol::HTTP2::NO_ERROR : ::Protocol::HTTP2::INTERNAL_ERROR)
        end

        def reset(code) = @stream.send_reset_stream(code)

        def send_head(response, length, ends)
          raise Gone if @stream.closed?

          fields = fields_of(response, length)
          @status = response.status
          @whole = ends
          @stream.send_headers(fields, ends ? END_STREAM : 0)
        end

        # Makes the fields of the head. They are checked before the block is made. An error in the midst of a block
        # would leave the two sides with different tables of headers.
        def fields_of(response, length)
          status = response.status
          raise ArgumentError, "the status #{status} is none of HTTP/2" unless status.between?(200, 999)
          raise ArgumentError, "HTTP/2 has no transfer-encoding" if response.body && AnswerBody.encoding(response.body)

          dated = false
          fields = [[":status", status.to_s]]
          response.headers.each do |name, value|
            dated ||= name == "date"
            fields << Fields.checked(name, value, small: true)
          end
          fields << ["date", HTTPDate.value] unless dated
          fields << ["content-length", length.to_s] if announces?(response, length)
          fields
        end

        def send_pieces(chunk, last)
          flush
          from = 0
          while from < chunk.bytesize
            size = [window, chunk.bytesize - from].min
            part = size == chunk.bytesize ? chunk : chunk.byteslice(from, size)
            from += size
            @sent += size
            @whole = last && from == chunk.bytesize # a later error takes nothing from the answer
            @stream.send_data(part, @whole ? END_STREAM : 0)
            @connection.sent_data(size)
          end
        ensure
          @torn = true if from && from < chunk.bytesize
        end

        # Waits until bytes can be sent.
        #
        # @return [Integer] bytes that can be sent now, at least one
        def window
          wait_for_window unless @stream.window?
          raise Gone if @stream.closed?

          @stream.available_frame_size
        end

        # Waits for the client's window, for a limited time in the whole answer. Otherwise a client that takes a little
        # from time to time would keep the answer for ever.
        def wait_for_window
          began = Clock.now
          stall = @server.limits.stall
          patience = [stall, stall + @sent.fdiv(@server.limits.rate) - @waited].min
          @connection.wait_until(patience) { @stream.window? }
          @waited += Clock.now - began
        rescue IO::TimeoutError
          reset(::Protocol::HTTP2::CANCEL)
          raise Gone
        end

        def gone? = @stream.closed?
        def begun? = answered?

        def refuse(refusal)
          @status = refusal.status
          @stream.refuse(refusal)
        end

        def break_off(error)
          reset(error.is_a?(Refusal) ? ::Protocol::HTTP2::CANCEL : ::Protocol::HTTP2::INTERNAL_ERROR)
        end

        def report(error) = error.is_a?(Gone) || super
      end
      private_constant :Answer
    end
  end
end
