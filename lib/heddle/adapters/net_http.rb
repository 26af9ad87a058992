# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("net_http", file: "net/http")

  module Adapters
    # Net::HTTP keeps the connection of a request that was ended by a cancel or a Timeout. The answer arrives late, and
    # the next request on the connection takes it for its own answer, in plain Ruby as well. In tasks the connection is
    # closed instead, and the next request makes a new one, as it does after a +read_timeout+.
    #
    # @private
    module NetHTTP
      # Takes the place of methods of Net::HTTP.
      module Request
        private

        def transport_request(request)
          return super unless Adapters.task?

          begin
            response = super
          ensure
            @socket&.close unless response || @socket&.closed?
          end
        end
      end

      Adapters.prepend_to("net_http", ::Net::HTTP, Request)
    end
  end
end
