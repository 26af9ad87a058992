# frozen_string_literal: true

require "protocol/http1"
require_relative "../refusal"

module Heddle
  class Server
    # Reads the lines of heads, chunks and trailers of an HTTP/1 connection, within their limits (RFC 9112, 2.2 and
    # 7.1).
    #
    # @private
    module HTTP1Lines
      # Bytes that the first line of a request, and the line of a chunk, may have.
      LINE_SIZE = 8192
      CHUNK_SIZE_DIGITS = 8
      CRLF = "\r\n"
      private_constant :LINE_SIZE, :CHUNK_SIZE_DIGITS, :CRLF

      # Counts the lines that the block reads as headers, together with the headers before the body.
      def read_with_bounds
        @reads_head = true
        yield
      ensure
        @reads_head = false
      end

      # Reads a line, which must end with CR LF. Some programs take a bare LF for the end of a line, as RFC 9112 (2.2)
      # allows. A proxy in front of this server may take the bare LF for a part of the line, and see another request. So
      # a line with a bare LF is refused as soon as it is read: the server does not wait for the bytes that follow. Puma
      # does the same.
      def read_line?
        limit = @reads_head && @version ? @limits.head_size : LINE_SIZE
        line = @stream.gets("\n", limit)
        return line if line.nil?

        unless line.chomp!(CRLF)
          raise line.bytesize == limit ? ::Protocol::HTTP1::LineLengthError : Refusal.new(400)
        end

        @reads_head ? head_line(line) : chunk_line(line)
      rescue Errno::ECONNRESET
        nil
      end

      private

      def begin_lines
        @head_size = @lines = @chunk_lines = 0
        @reads_head = false
      end

      # Counts a line of the head. The first line is not a header, so the head may have one line more than the limit.
      def head_line(line)
        @head_size += line.bytesize
        @lines += 1 unless line.empty?
        raise Refusal, 431 if @head_size > @limits.head_size || @lines > @limits.headers + 1

        line
      end

      # Checks the line with the size of a chunk. A CR in it is refused, because other programs might take it for the
      # end of the line. A size above the limit is refused at once, before the server waits for the bytes. The other
      # parts of these lines, such as extensions and zeros, have one limit for the whole body.
      def chunk_line(line)
        @chunk_lines += [line.bytesize - CHUNK_SIZE_DIGITS, 0].max
        raise Refusal, 400 if line.include?("\r") || @chunk_lines > @limits.head_size
        raise Refusal, 413 if line.to_i(16) > @limits.body_size

        line
      end
    end
  end
end
