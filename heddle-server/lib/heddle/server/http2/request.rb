# frozen_string_literal: true

require "protocol/http/request"
require_relative "../disconnected"
require_relative "../noted"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # A request of HTTP/2, in the form that protocol-rack takes.
      #
      # @private
      class Request < ::Protocol::HTTP::Request
        include EarlyHints
        include Noted

        VERSION = "HTTP/2"
        private_constant :VERSION

        # @return [Trailers, nil] the trailers of the answer
        attr_accessor :trailers

        # @param stream [Stream]
        # @param connection [Connection]
        # @param head [Head]
        # @param body [RequestBody, nil]
        def initialize(stream, connection, head, body)
          @stream = stream
          @connection = connection
          super(connection.scheme, head.authority, head.method, head.path, VERSION, head.headers, body)
        end

        # @return [#ip_address, nil] the address of the client
        def peer = @connection.peer

        # @param status [Integer]
        # @param headers [Hash{String => String}]
        # @raise [IOError] if the answer has begun
        def send_interim_response(status, headers)
          raise IOError, "the answer has begun" if @stream.answered?

          @stream.write_interim_response(status, headers)
        end

        # @return [Disconnected]
        def disconnected = @disconnected ||= Disconnected.new { @stream.closed? }

        # @private
        # @return [Disconnected, nil] if the application has asked for it
        def watched = @disconnected

        # @return [Boolean] false, because the connection has other streams
        def hijack? = false

        # Does nothing: the application cannot end the connection, because it has other streams.
        def last! = nil

        # @return [Integer] bytes of the answer's body that were sent
        def sent = @stream.sent

        # @return [Refusal, nil] why the request's body could not be read
        def refused = body&.refused
      end
    end
  end
end
