# frozen_string_literal: true

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Reads and writes the bytes of the frames. Written frames wait here until the task of the connection sends them.
      # Other tasks may be cancelled at any time, and a frame that was sent in part would be the end of the connection.
      #
      # @private
      class Wire
        # The number of waiting bytes at which the wire has no room for further frames.
        LIMIT = 128 * 1024

        # @param bytes [Server::Stream]
        # @yield when bytes wait to be sent
        def initialize(bytes, &tell)
          @bytes = bytes
          @tell = tell
          @output = String.new
        end

        def read(size) = @bytes.read(size)
        def write(bytes) = @output << Server::Stream.bytes_of(bytes)
        def flush = @tell.call
        def waiting? = !@output.empty?
        def room? = @output.bytesize < LIMIT

        # Sends all bytes that wait.
        def send_out
          @bytes.write(take)
          @bytes.flush
        end

        # @return [String] the bytes that wait to be sent
        def take
          output = @output
          @output = String.new
          output
        end
      end
    end
  end
end
