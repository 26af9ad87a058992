# frozen_string_literal: true

require "protocol/http/error"
require "protocol/http/headers"

module Heddle
  class Server
    # The headers of a request and of an answer. They are asked for many that they do not have: these methods then make
    # no copies of what there is.
    #
    # @private
    class RequestHeaders < ::Protocol::HTTP::Headers
      # (Without Range: that of protocol-http refuses what it does not understand, and an application may ignore it.)
      POLICY = superclass::POLICY.dup.tap { |policy| policy.delete("range") }.freeze
      private_constant :POLICY

      # @param fields [Array<Array(String, String)>]
      def initialize(fields)
        super(fields, policy: POLICY)
      end

      # @param key [String] in small letters
      def delete(key)
        return super unless @indexed
        return unless @indexed.key?(key)

        @fields.reject! { |name,| name.casecmp(key).zero? }
        @indexed.delete(key)
      end

      # A trailer that means something only before the body is ignored (RFC 9110, 6.5.1): the request was understood
      # without it. For underscores and spaces see {HTTP1#read_headers}.
      #
      # @param value [String, nil]
      def add(name, value, trailer: trailer?)
        super(name, value&.rstrip, trailer:) unless name.include?("_")
      rescue ::Protocol::HTTP::InvalidTrailerError
        nil
      end

      # @return [Enumerable] those before the trailers
      def header(&block) = block || @tail ? super : @fields
    end

    # @private The same. All names are in small letters.
    class ResponseHeaders < ::Protocol::HTTP::Headers
      NONE = [].freeze
      private_constant :NONE

      def delete(key) = @indexed || @fields.any? { |name,| name == key } ? super : nil

      def extract(keys) = @fields.any? { |name,| keys.include?(name) } ? super : NONE
    end
  end
end
