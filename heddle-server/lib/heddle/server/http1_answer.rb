# frozen_string_literal: true

require "protocol/http1"
require_relative "answer_body"
require_relative "headers"
require_relative "http_date"
require_relative "output"

module Heddle
  class Server
    # Writes the answers of an HTTP/1 connection: the head, and the body with a length, in chunks or until the end of
    # the connection (RFC 9112, 6).
    #
    # @private
    module HTTP1Answer
      # Writes a body that has a length or ends with the connection.
      class PlainOutput < Output
        # @return [Integer] bytes that were written around the pieces of the body
        attr_reader :framing

        def initialize(stream, length = nil, trailers = nil)
          super(length, trailers)
          @stream = stream
          @framing = 0
        end

        private

        def send_chunk(chunk)
          @stream.write(chunk)
          @stream.flush
        end

        def send_end(_trailers) = nil
      end

      # Writes a body in chunks, because its length is not known before (RFC 9112, 7.1).
      class ChunkedOutput < PlainOutput
        private

        def send_chunk(chunk)
          size = chunk.bytesize.to_s(16)
          @framing += size.bytesize + 4
          @stream.write(size, "\r\n", chunk, "\r\n")
          @stream.flush
        end

        def send_end(trailers)
          lines = trailers.map { |name, value| "#{name}: #{value}\r\n" }
          @framing += 5 + lines.sum(&:bytesize)
          @stream.write("0\r\n", *lines, "\r\n")
          @stream.flush
        end
      end
      private_constant :PlainOutput, :ChunkedOutput

      private

      # Writes the head of an answer. A status below 200 or above 999 cannot be the status of the last answer to a
      # request (RFC 9110, 15).
      def write_head(response, upgrades)
        status = response.status
        raise ArgumentError, "the status #{status} is none of an answer" unless upgrades || status.between?(200, 999)

        write_response(@version, upgrades ? 101 : status, response.headers)
        write_stream(HTTPDate.line) unless response.headers.fields.any? { |name,| name == "date" }
      end

      def write_header(name, value)
        name, value = Fields.checked(name, value)
        write_stream("#{name}: #{value}\r\n")
      end

      def upgrade(response)
        body = AnswerBody.made(response.body)
        stream = write_upgrade_body(response.protocol)
        @body_from = stream.put
        stream.patience = nil
        stream.sync = true
        body.stream? ? body.call(stream) : body.each { |chunk| stream.write(chunk) } && stream.close
        stream.await_close
      end

      def write_response_body(request, response, body)
        return end_whole("\r\n") if bodyless?(response.status)

        length = body&.length
        return end_whole(length_line(request, length || 0)) if body.nil? || (length && request.head?)

        head, output = framing_of(body, length, request)
        end_head(head)
        write_body(body, length, output, request) unless request.head?
        end_whole
      end

      # @return [Array(String, PlainOutput)] the last lines of the head, and the output that takes the body, if the
      #   application makes the body while it is sent
      def framing_of(body, length, request)
        if length && !(request.trailers && request.version == "HTTP/1.1")
          [length_line(request, length), (PlainOutput.new(@stream, length) if AnswerBody.made_meanwhile?(body))]
        elsif (encoding = AnswerBody.encoding(body))
          ["transfer-encoding: #{encoding}\r\n\r\n", PlainOutput.new(@stream)]
        elsif request.version == "HTTP/1.1"
          ["transfer-encoding: chunked\r\n\r\n", ChunkedOutput.new(@stream, nil, request.trailers)]
        else
          @plain = true
          ["\r\n", PlainOutput.new(@stream)]
        end
      end

      # @param line [String, nil] the end of the head
      def end_whole(line = nil)
        end_head(line) if line
        flush_stream
        @whole = true
        send_end_stream!
      end

      # Returns the header with the length, and the end of the head. Many applications leave out the body of an answer
      # to HEAD. Its length is not known then, and must not be sent (RFC 9110, 8.6).
      def length_line(request, length)
        length.zero? && request.head? ? "\r\n" : "content-length: #{length}\r\n\r\n"
      end

      def end_head(line)
        write_stream(line)
        @body_from = @stream.put
      end

      # Returns whether the answer ends with the connection. HTTP/1.0 has no chunks. If the application makes the chunks
      # itself, the server does not know whether they have an end.
      def ends_with_connection?(request, response)
        return false unless response.body && response.body.length.nil?

        request.version == "HTTP/1.0" || !AnswerBody.encoding(response.body).nil?
      end

      def bodyless?(status) = status == 204 || status == 304 || status < 200

      def write_body(body, length, output, request)
        output ? write_streamed(body, request, output) : write_sized(body, length)
      end

      def write_sized(body, length)
        flush_stream unless body.ready? # the body may take its time
        AnswerBody.each_of(body, length) do |chunk|
          write_stream(chunk)
          flush_stream unless body.ready?
        end
      end

      def write_streamed(body, request, output)
        flush_stream unless body.ready?
        output.send_body(body, request.body)
      ensure
        @framing = output.framing
      end
    end
  end
end
