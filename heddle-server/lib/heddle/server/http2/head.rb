# frozen_string_literal: true

require_relative "../headers"
require_relative "../refusal"
require_relative "../targets"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Checks and holds the header fields of a request (RFC 9113, 8.2 and 8.3).
      #
      # @private
      class Head
        # Raised when the fields cannot be the fields of a request.
        class Malformed < StandardError; end

        METHOD = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
        PSEUDO = %w[:method :scheme :authority :path].freeze
        # Names of fields that belong to HTTP/1.
        OF_CONNECTIONS = %w[connection keep-alive proxy-connection transfer-encoding upgrade].freeze
        private_constant :METHOD, :PSEUDO, :OF_CONNECTIONS

        # @return [String]
        attr_reader :method, :path, :authority
        # @return [Protocol::HTTP::Headers]
        attr_reader :headers
        # @return [Integer, nil] the length of the body
        attr_reader :length
        # @return [String, nil] the header Expect
        attr_reader :expect

        # @param fields [FieldList]
        # @raise [Malformed]
        # @raise [Refusal]
        def initialize(fields)
          @pseudo = {}
          @fields = []
          @host = nil
          @cookies = []
          fields.each { |name, value| name.start_with?(":") ? take_pseudo(name, value) : take(name, value) }
          raise Refusal, 431 if fields.too_large?

          @fields << ["cookie", @cookies.join("; ")] unless @cookies.empty?
          @method, scheme, @authority, @path = @pseudo.values_at(*PSEUDO)
          raise Malformed unless @method&.match?(METHOD)
          raise Refusal, 501 if @method == "CONNECT"
          raise Malformed unless scheme && @path

          check_target
          @headers = RequestHeaders.new(@fields)
        end

        # Yields the fields after the body.
        #
        # @param fields [FieldList]
        # @yield [name, value]
        # @raise [Malformed]
        def self.each_trailer(fields)
          raise Malformed if fields.too_large?

          fields.each do |name, value|
            raise Malformed unless Fields.small_name?(name) && !OF_CONNECTIONS.include?(name)

            yield(name, value_of(value))
          end
        end

        # @return [String] the value, if it may be one
        # @raise [Malformed]
        def self.value_of(value)
          value = Server::Stream.bytes_of(value)
          raise Malformed unless Fields.value?(value)

          value
        end

        private

        def take_pseudo(name, value)
          raise Malformed if !PSEUDO.include?(name) || @pseudo.key?(name) || @regular

          @pseudo[name] = self.class.value_of(value)
        end

        def take(name, value)
          @regular = true
          raise Malformed unless Fields.small_name?(name)

          value = self.class.value_of(value)
          case name
          when "host" then take_host(value)
          when "content-length" then take_length(value)
          when "cookie" then @cookies << value # a cookie may come in parts
          when "te" then raise Malformed unless value.casecmp?("trailers")
          when "expect" then @expect = value
          when *OF_CONNECTIONS then raise Malformed
          else
            # In the environment a name with an underscore would look like another name: X_Real_IP like X-Real-IP.
            @fields << [name, value] unless name.include?("_")
          end
        end

        def take_host(value)
          raise Malformed if @host

          @host = value
        end

        def take_length(value)
          raise Malformed if @length || !value.match?(/\A\d+\z/)

          @length = Integer(value, 10)
        end

        def check_target
          raise Malformed unless Targets.target?(@path) && (@path.start_with?("/") || asterisk?)
          raise Malformed if @authority && @host && !@authority.casecmp?(@host)

          @authority ||= @host
          raise Refusal, 400 unless @authority && Targets.authority?(@authority)

          @authority = "localhost" if @authority.empty? # Rack wants a name
        end

        def asterisk? = @path == "*" && @method == "OPTIONS"
      end
    end
  end
end
