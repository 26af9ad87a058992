# frozen_string_literal: true

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # What the frames are read from and written to. Frames wait here until the task of the connection sends them:
      # others may be cancelled at any time, and a frame that was sent in part would be the end of the connection.
      #
      # @private
      class Wire
        # With so many bytes that wait there is no room for more.
        LIMIT = 128 * 1024

        # @param bytes [Server::Stream]
        # @yield when there is something to be sent
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

        # Sends all of it.
        def send_out
          @bytes.write(take)
          @bytes.flush
        end

        # @return [String] what waits to be sent
        def take
          output = @output
          @output = String.new
          output
        end
      end
    end
  end
end
