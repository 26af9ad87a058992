# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("dalli", ">= 5", "< 6")

  module Adapters
    # When dalli has connected, it asks for the version of memcached. If a cancel or a Timeout ends the wait for this
    # answer, dalli keeps the connection, and the next call gets the answer to that question. In tasks the connection is
    # closed instead, and the next call makes a new one.
    #
    # @private
    module Dalli
      # Takes the place of methods of Dalli::Protocol::Base.
      module Connection
        private

        def connect
          return super unless Adapters.task?

          begin
            super
            connected = true
          ensure
            close unless connected
          end
        end
      end

      Adapters.prepend_to("dalli", ::Dalli::Protocol::Base, Connection)
    end
  end
end
