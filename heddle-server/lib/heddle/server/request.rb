# frozen_string_literal: true

require "protocol/http/request"
require_relative "disconnected"

module Heddle
  class Server
    # A request, in the form that protocol-rack takes.
    #
    # @private
    class Request < ::Protocol::HTTP::Request
      # @return [#ip_address] the address of the client
      attr_reader :peer
      # @return [Trailers, nil] the trailers of the answer
      attr_writer :trailers

      # @param connection [Connection]
      # @param session [HTTP1, HTTP2::Stream]
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

      # Sends early hints.
      #
      # @param headers [Hash{String => String, Array<String>}] several values stand in an Array, or in lines
      # @return [void]
      # @raise [IOError] if the answer has begun
      def send_early_hints(headers)
        fields = headers.flat_map do |name, values|
          Array(values).flat_map { |value| value.to_s.split("\n") }.map { |value| [name.to_s.downcase, value] }
        end
        send_interim_response(103, fields)
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

      # @return [Trailers, nil] the trailers of the answer; HTTP/1.0 has none
      def trailers = (@trailers unless version == "HTTP/1.0")

      # @return [Boolean] whether the application may take over the connection. One of HTTP/2 has other streams
      def hijack? = @session.respond_to?(:hijack!)

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

      # @return [Refusal, nil] why the request's body could not be read
      def refused = body&.refused

      # Notes which errors of the request were reported.
      #
      # @param error [Exception]
      # @return [Boolean] whether the error is new, or has more suppressed errors than before
      def note(error)
        @noted ||= {}.compare_by_identity
        suppressed = error.is_a?(TaskFailure) ? error.suppressed.size : 0
        return false if @noted[error]&.>=(suppressed)

        @noted[error] = suppressed
        true
      end

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
