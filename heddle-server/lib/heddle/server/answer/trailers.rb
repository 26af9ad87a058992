# frozen_string_literal: true

require_relative "../headers"

module Heddle
  class Server
    # The fields after the body of an answer (RFC 9110, 6.5). The application has set env["heddle.trailers"] to a Hash,
    # or to a Proc that makes a Hash when the body has ended.
    #
    # @private
    class Trailers
      # Names of fields that have a meaning only before the body.
      FORBIDDEN = %w[
        age authorization cache-control connection content-encoding content-length content-range content-type date
        expires host keep-alive location proxy-authenticate retry-after set-cookie te trailer transfer-encoding upgrade
        vary www-authenticate
      ].freeze
      private_constant :FORBIDDEN

      # @param given [Hash, #call, nil]
      # @return [Trailers, nil]
      # @raise [ArgumentError]
      def self.of(given)
        return if given.nil?
        return new(given) if given.is_a?(Hash) || given.respond_to?(:call)

        raise ArgumentError, "heddle.trailers must be a Hash or a Proc, not #{given.inspect}"
      end

      def initialize(given)
        @given = given
      end

      # @return [Array<Array(String, String)>] the fields. They are asked for when the body has ended
      # @raise [ArgumentError] if a field must not be sent
      def fields
        fields = @given.is_a?(Hash) ? @given : @given.call
        fields.to_a.map do |name, value|
          name = name.to_s.downcase
          raise ArgumentError, "#{name} cannot be a trailer" if FORBIDDEN.include?(name)

          Fields.checked(name, value, small: true)
        end
      end
    end
    private_constant :Trailers
  end
end
