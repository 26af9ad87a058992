# frozen_string_literal: true

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Where the body of an answer goes that is made piece by piece.
      #
      # @private
      class Output
        # @param stream [Stream]
        def initialize(stream)
          @stream = stream
          @closed = false
        end

        def write(chunk)
          @stream.send_chunk(chunk) unless chunk.empty?
        end

        # (The stream ends when the body has returned: one that raises an error is closed before that, too.)
        def close_write(error = nil)
          return if @closed

          @closed = true
          raise error if error
        end

        def closed? = @closed
      end
    end
  end
end
