# frozen_string_literal: true

require_relative "../output"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Takes the body of an answer that the application makes piece by piece.
      #
      # @private
      class Output < Server::Output
        # @param stream [Stream]
        # @param length [Integer, nil]
        # @param trailers [Trailers, nil]
        def initialize(stream, length, trailers)
          super(length, trailers)
          @stream = stream
        end

        private

        def send_chunk(chunk) = @stream.send_chunk(chunk, last: @remaining&.zero?)
        def send_end(trailers) = @stream.send_end(trailers)
      end
    end
  end
end
