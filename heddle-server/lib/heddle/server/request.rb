# frozen_string_literal: true

require "protocol/http/request"
require_relative "disconnected"
require_relative "noted"

module Heddle
  class Server
    # A request of HTTP/1, in the form that protocol-rack takes.
    #
    # @private
    class Request < ::Protocol::HTTP::Request
      include EarlyHints
      include Noted

      # @return [#ip_address] the address of the client
      attr_reader :peer
      # @return [Trailers, nil] the trailers of the answer
      attr_accessor :trailers

      # @param connection [Connection]
      # @param session [HTTP1]
      # @param parts [Array] the parts of the request, as the superclass takes them
      def initialize(connection, session, *parts)
        @session = session
        @last = @answered = false
        @peer = connection.peer
        super(connection.scheme, *parts)
      end

      # @param status [Integer]
      # @param headers [Hash{String => String}]
      # @raise [IOError] if the answer has begun: the connection may serve the next request by now
      def send_interim_response(status, headers)
        check_unanswered
        @session.write_interim_response(status, headers)
      end

      # Notes that the answer has begun. From now on only the answer reaches the connection.
      def answered! = @answered = true

      # @return [Disconnected]
      def disconnected = @disconnected ||= Disconnected.new { @session.left? }

      # @private
      # @return [Disconnected, nil] if the application has asked for it
      def watched = @disconnected

      # Notes that the application wants the connection to end with the answer.
      def last! = @last = true

      # @return [Boolean] whether this must be the last request of its connection
      def last? = @last

      # @return [Boolean] whether the application may take over the connection
      def hijack? = true

      # Gives the connection to the application: its IO, which stands at the byte after the request.
      #
      # @return [Request] this request, whose {#io} is the connection
      def hijack!
        return self if @io

        check_unanswered
        stream = @session.hijack!
        rest = stream.take_buffered
        @io = stream.io
        stream.patience = nil
        put_back(rest) unless rest.empty?
        self
      end

      # @return [IO, OpenSSL::SSL::SSLSocket]
      attr_reader :io

      # @return [Integer] bytes of the answer's body that were sent
      def sent = @session.body_sent

      # @return [Refusal, nil] why the request's body could not be read
      def refused = body&.refused

      private

      def check_unanswered
        raise IOError, "the answer has begun" if @answered
      end

      # Puts bytes back, so that the application reads them first. An SSLSocket takes back one character at a time.
      def put_back(bytes)
        return @io.ungetbyte(bytes) if @io.respond_to?(:ungetbyte)

        bytes.bytes.reverse_each { |byte| @io.ungetc(byte) }
      end
    end
  end
end
