# frozen_string_literal: true

require "protocol/rack"

module Heddle
  class Server
    # The body of a request, as a Rack application reads it.
    #
    # @private
    class RackInput < ::Protocol::Rack::Input
      # Yields the chunks of the body. The method of protocol-rack leaves out bytes that a gets or a read has put into
      # its buffer.
      def each
        return to_enum unless block_given?

        while (chunk = read_partial)
          yield chunk
        end
      end
    end
    private_constant :RackInput
  end
end
