# frozen_string_literal: true

require "protocol/http1"
require_relative "refusal"

module Heddle
  class Server
    # How an HTTP/1 connection reads the lines of heads, chunks and trailers, and their bounds (RFC 9112, 2.2 and 7.1).
    #
    # @private
    module HTTP1Lines
      # Bytes of the first line of a request, and of the line of a chunk.
      LINE_SIZE = 8192
      CHUNK_SIZE_DIGITS = 8
      CRLF = "\r\n"
      private_constant :LINE_SIZE, :CHUNK_SIZE_DIGITS, :CRLF

      # What the block reads is a part of the headers, and counts with those before the body.
      def read_with_bounds
        @reads_head = true
        yield
      ensure
        @reads_head = false
      end

      # Each line ends with CR LF. Some take a bare LF for its end, as RFC 9112 (2.2) allows. A proxy in front may take
      # it for a part of the line, and see another request. So it is refused, and where it stands: nobody waits for what
      # follows. Puma does the same.
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

      # (The first line is none of the headers.)
      def head_line(line)
        @head_size += line.bytesize
        @lines += 1 unless line.empty?
        raise Refusal, 431 if @head_size > @limits.head_size || @lines > @limits.headers + 1

        line
      end

      # The size of a chunk. Others might take a CR for its end, and nobody waits for more than is taken. What the lines
      # of a body have besides a size (extensions, zeros) is bounded as a whole.
      def chunk_line(line)
        @chunk_lines += [line.bytesize - CHUNK_SIZE_DIGITS, 0].max
        raise Refusal, 400 if line.include?("\r") || @chunk_lines > @limits.head_size
        raise Refusal, 413 if line.to_i(16) > @limits.body_size

        line
      end
    end
  end
end
