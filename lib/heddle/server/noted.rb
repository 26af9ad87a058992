# frozen_string_literal: true

module Heddle
  class Server
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
    private_constant :Noted
  end
end
