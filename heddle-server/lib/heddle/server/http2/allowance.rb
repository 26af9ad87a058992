# frozen_string_literal: true

require_relative "../clock"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Limits how often a client may do something that costs the server more than the client. A burst of such acts is
      # allowed at any speed, and after it a number of acts a second.
      #
      # @private
      class Allowance
        # @param burst [Integer]
        # @param per_second [Integer]
        def initialize(burst, per_second)
          @burst = @left = burst
          @per_second = per_second
          @since = Clock.now
        end

        # Counts one such act of the client.
        #
        # @raise [Protocol::HTTP2::ProtocolError] if the allowance is used up
        def take
          refill if @left < 1
          @left -= 1
          return unless @left.negative?

          raise ::Protocol::HTTP2::ProtocolError.new("too many", ::Protocol::HTTP2::ENHANCE_YOUR_CALM)
        end

        private

        def refill
          now = Clock.now
          @left = [@left + ((now - @since) * @per_second), @burst].min
          @since = now
        end
      end
    end
  end
end
