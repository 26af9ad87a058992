# frozen_string_literal: true

module Heddle
  class Server # rubocop:disable Style/Documentation -- see ../server.rb
    # The errors of a request that somebody was told of.
    #
    # @private
    module Noted
      # @param error [Exception]
      # @return [Boolean] whether it is a new one, or has more suppressed ones than before
      def note(error)
        @noted ||= {}.compare_by_identity
        suppressed = error.is_a?(TaskFailure) ? error.suppressed.size : 0
        return false if @noted[error]&.>=(suppressed)

        @noted[error] = suppressed
        true
      end
    end

    # What HTTP/1 and HTTP/2 have in common beside that.
    #
    # @private
    module EarlyHints
      # @param headers [Hash{String => String, Array<String>}] several values stand in an Array, or in lines
      # @return [void]
      # @raise [IOError] if the answer has begun
      def send_early_hints(headers)
        fields = headers.flat_map do |name, values|
          Array(values).flat_map { |value| value.to_s.split("\n") }.map { |value| [name.to_s.downcase, value] }
        end
        send_interim_response(103, fields)
      end
    end
    private_constant :Noted, :EarlyHints
  end
end
