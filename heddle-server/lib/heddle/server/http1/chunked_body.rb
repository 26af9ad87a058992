# frozen_string_literal: true

require "protocol/http1/body/chunked"

module Heddle
  class Server
    # A body in chunks. Its trailers have the limits of headers, but they are not headers.
    #
    # @private
    class ChunkedBody < ::Protocol::HTTP1::Body::Chunked
      # Reads a chunk. A client may send many small chunks at once, so that the reader never waits. Therefore each read
      # spends a part of the turn.
      def read
        Heddle.checkpoint
        super
      end

      private

      def read_trailer
        @headers.trailer!
        @connection.read_with_bounds { super }
      end
    end
  end
end
