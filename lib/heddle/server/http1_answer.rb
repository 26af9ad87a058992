# frozen_string_literal: true

require "protocol/http1"
require "protocol/http/body/stream"
require_relative "answer_body"
require_relative "http_date"

module Heddle
  class Server
    # How an HTTP/1 connection writes an answer: its head, and its body with a length, in chunks or until the end of the
    # connection (RFC 9112, 6).
    #
    # @private
    module HTTP1Answer
      # Where a body goes that ends with the connection.
      class PlainOutput
        # @return [Integer] bytes that were written around its pieces
        attr_reader :framing

        def initialize(stream)
          @stream = stream
          @framing = 0
        end

        def write(chunk)
          @stream.write(chunk)
          @stream.flush
        end

        def close_write(error = nil)
          @closed = true
          raise error if error
        end

        def closed? = @closed
      end

      # Where a body goes whose length is not known before (RFC 9112, 7.1).
      class ChunkedOutput < PlainOutput
        def write(chunk)
          return if chunk.empty?

          size = chunk.bytesize.to_s(16)
          @framing += size.bytesize + 4
          @stream.write(size, "\r\n", chunk, "\r\n")
          @stream.flush
        end

        def close_write(error = nil)
          return if @closed

          super
          @framing += 5
          @stream.write("0\r\n\r\n")
        end
      end
      private_constant :PlainOutput, :ChunkedOutput

      private

      # (Other statuses are not those of the last answer to a request: RFC 9110, 15.)
      def write_head(response)
        status = response.status
        upgrades = response.protocol && response.body
        raise ArgumentError, "the status #{status} is none of an answer" unless upgrades || status.between?(200, 999)

        write_response(@version, upgrades ? 101 : status, response.headers)
        write_stream(HTTPDate.line) unless response.headers.fields.any? { |name,| name == "date" }
      end

      def upgrade(response)
        body = AnswerBody.made(response.body)
        stream = write_upgrade_body(response.protocol)
        @body_from = stream.put
        stream.patience = nil
        stream.sync = true
        body.stream? ? body.call(stream) : body.each { |chunk| stream.write(chunk) }
      end

      def write_response_body(request, response, body)
        length = body&.length
        if bodyless?(response.status)
          end_head("\r\n")
        elsif body.nil? || length
          end_head(length_line(request, length || 0))
          write_sized(body, length) unless body.nil? || request.head?
        elsif request.version == "HTTP/1.1"
          end_head("transfer-encoding: chunked\r\n\r\n")
          write_streamed(body, request, ChunkedOutput.new(@stream)) unless request.head?
        else
          @plain = true
          end_head("\r\n")
          write_streamed(body, request, PlainOutput.new(@stream)) unless request.head?
        end
        flush_stream
        @whole = true
        send_end_stream!
      end

      # (Many applications leave the body of HEAD out: its length is not known, and must not be told, RFC 9110, 8.6.)
      def length_line(request, length)
        length.zero? && request.head? ? "\r\n" : "content-length: #{length}\r\n\r\n"
      end

      def end_head(line)
        write_stream(line)
        @body_from = @stream.put
      end

      # HTTP/1.0 has no chunks.
      def ends_with_connection?(request, response)
        request.version == "HTTP/1.0" && response.body && response.body.length.nil?
      end

      def bodyless?(status) = status == 204 || status == 304 || status < 200

      def write_sized(body, length)
        flush_stream unless body.ready? # it may take its time
        AnswerBody.each_of(body, length) do |chunk|
          write_stream(chunk)
          flush_stream unless body.ready?
        end
      end

      def write_streamed(body, request, output)
        flush_stream unless body.ready?
        body = AnswerBody.made(body)
        if body.stream?
          body.call(::Protocol::HTTP::Body::Stream.new(request.body, output))
        else
          AnswerBody.each(body) do |chunk|
            output.write(chunk)
            flush_stream unless body.ready?
          end
        end
        output.close_write
      ensure
        @framing = output.framing
      end
    end
  end
end
