# frozen_string_literal: true

module Heddle
  class Server # rubocop:disable Style/Documentation -- see ../server.rb
    # Notes which errors of a request were reported.
    #
    # @private
    module Noted
      # @param error [Exception]
      # @return [Boolean] whether the error is new, or has more suppressed errors than before
      def note(error)
        @noted ||= {}.compare_by_identity
        suppressed = error.is_a?(TaskFailure) ? error.suppressed.size : 0
        return false if @noted[error]&.>=(suppressed)

        @noted[error] = suppressed
        true
      end
    end

    # Sends early hints, for the requests of HTTP/1 and of HTTP/2.
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
