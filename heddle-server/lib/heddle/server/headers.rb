# frozen_string_literal: true

require "protocol/http/error"
require "protocol/http/headers"
require_relative "stream"

module Heddle
  class Server
    # Checks names and values of header fields, in both directions (RFC 9110, 5.5; RFC 9113, 8.2.1). White space is a
    # space or a tab.
    #
    # @private
    module Fields
      NAME = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
      SMALL_NAME = /\A[!#$%&'*+\-.^_`|~0-9a-z]+\z/
      CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/
      AMISS = /#{CONTROL}|\A[ \t]|[ \t]\z/
      private_constant :NAME, :SMALL_NAME, :CONTROL, :AMISS

      class << self
        def small_name?(name) = name.ascii_only? && name.match?(SMALL_NAME)

        # @param value [String] its bytes
        def value?(value) = !value.match?(AMISS)

        # @param value [String] its bytes
        def control?(value) = value.match?(CONTROL)

        # @return [String] without spaces and tabs at its end
        def trimmed(value)
          return value unless value.end_with?(" ", "\t")

          last = value.rindex(/[^ \t]/)
          last ? value[0..last] : ""
        end

        # @param small [Boolean] whether the name must be in small letters
        # @return [Array(String, String)] a field that the application sends, without spaces around its value
        # @raise [ArgumentError] if it must not be sent
        def checked(name, value, small: false)
          name = name.to_s
          right = name.ascii_only? && name.match?(small ? SMALL_NAME : NAME)
          raise ArgumentError, "invalid header #{name.inspect}" unless right

          value = Stream.bytes_of(value.to_s)
          return [name, value] if value?(value)
          raise ArgumentError, "invalid value of the header #{name}: #{value.inspect}" if control?(value)

          [name, trimmed(value).sub(/\A[ \t]+/, "")]
        end
      end
    end
    private_constant :Fields

    # The headers of a request. The server and the libraries ask for many headers that a request does not have. The
    # methods here then make no copies of the fields.
    #
    # @private
    class RequestHeaders < ::Protocol::HTTP::Headers
      # The policy of protocol-http without Range: its Range refuses a value that it does not understand, and an
      # application may ignore such a value.
      POLICY = superclass::POLICY.dup.tap { |policy| policy.delete("range") }.freeze
      private_constant :POLICY

      # @param fields [Array<Array(String, String)>]
      def initialize(fields)
        super(fields, policy: POLICY)
      end

      # @param key [String] the name in small letters
      def delete(key)
        return super unless @indexed
        return unless @indexed.key?(key)

        @fields.reject! { |name,| name.casecmp(key).zero? }
        @indexed.delete(key)
      end

      # Adds a field. A trailer that has a meaning only before the body is ignored (RFC 9110, 6.5.1), because the
      # request was understood without it. For underscores and spaces see {HTTP1#read_headers}.
      #
      # @param value [String, nil]
      def add(name, value, trailer: trailer?)
        super(name, value && Fields.trimmed(value), trailer:) unless name.include?("_")
      rescue ::Protocol::HTTP::InvalidTrailerError
        nil
      end

      # @return [Enumerable] the fields before the trailers
      def header(&block) = block || @tail ? super : @fields
    end

    # @private The headers of an answer. Its methods make no copies, either. All names are in small letters.
    class ResponseHeaders < ::Protocol::HTTP::Headers
      NONE = [].freeze
      private_constant :NONE

      def delete(key) = @indexed || @fields.any? { |name,| name == key } ? super : nil

      def extract(keys) = @fields.any? { |name,| keys.include?(name) } ? super : NONE
    end
  end
end
