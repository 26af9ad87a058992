# frozen_string_literal: true

module Heddle
  class Server
    # Checks the target of a request, and the authority that a request names.
    #
    # @private
    module Targets
      AUTHORITY = /\A(?:[A-Za-z0-9_.\-~%!$&'()*+;=]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?\z/
      TARGET = /\A[!"$-~\x80-\xff]+\z/n
      private_constant :AUTHORITY, :TARGET

      class << self
        # @return [Boolean] whether the text is a name or an address, perhaps with a port
        def authority?(text) = text.match?(AUTHORITY)

        # @return [Boolean] whether the text has no spaces, no control characters and no fragment
        def target?(text) = text.match?(TARGET)
      end
    end
  end
end
