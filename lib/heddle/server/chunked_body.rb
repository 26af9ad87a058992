# frozen_string_literal: true

require "protocol/http1/body/chunked"

module Heddle
  class Server
    # A body in chunks, whose trailers have the bounds of headers, and are none.
    #
    # @private
    class ChunkedBody < ::Protocol::HTTP1::Body::Chunked
      # A client may send many small chunks at once: whoever reads them does not wait.
      def read
        CoreExt.spend_turn(nil)
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
