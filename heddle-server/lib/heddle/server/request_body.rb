# frozen_string_literal: true

require "protocol/http/body/wrapper"
require_relative "refusal"
require_relative "stream"

module Heddle
  class Server
    # Reads the body of a request, within its limits.
    #
    # @private
    class RequestBody < ::Protocol::HTTP::Body::Wrapper
      # @return [Refusal, nil] why the body could not be read
      attr_reader :refused

      # @param body [Protocol::HTTP::Body::Readable]
      # @param session [HTTP1, HTTP2::Stream]
      # @param limits [Limits]
      # @param continue [String, nil] the header Expect
      def initialize(body, session, limits, continue: nil)
        super(body)
        @session = session
        @limits = limits
        @continue = continue
        @size = 0
      end

      # @return [String, nil] nil at its end
      def read
        invite
        chunk = super
        @size += chunk.bytesize if chunk
        refuse(413) if @size > @limits.body_size
        chunk
      rescue Refusal => e
        refuse(e.status)
      rescue IO::TimeoutError
        refuse(408)
      rescue ::Protocol::HTTP::BadRequest, ::Protocol::HTTP1::ProtocolError, ::Protocol::HTTP1::LineLengthError,
             ::Protocol::HTTP::RemoteError, *Stream::GONE # the client has gone before its end
        refuse(400)
      end

      # Reads the rest of the body, if it is small.
      #
      # @return [Boolean] whether the body has been read to its end
      def finish
        return true if @finished || empty?
        return false if @continue || @refused

        left = @limits.linger_size
        while left.positive?
          return @finished = true unless (chunk = read)

          left -= chunk.bytesize
        end
        false
      rescue StandardError
        false
      end

      # Sends a 100 to a client that waits for it before it sends the body (RFC 9110, 10.1.1).
      def invite
        return unless (expected = @continue)

        @continue = nil
        @session.write_interim_response(100) if expected.casecmp?("100-continue")
      end

      # Sends the 100 if this answer is made while it is sent, because the application may then read the body.
      #
      # @param response [Protocol::HTTP::Response]
      def invite_for(response)
        invite if response.status < 400 && response.body && response.body.length.nil?
      end

      # @param response [Protocol::HTTP::Response]
      # @return [Boolean] whether {#finish} will not reach the end of the body when this answer is sent
      def left_unread?(response)
        return false if @finished || empty?
        return true if @continue || @refused

        length && length - @size > @limits.linger_size && (response.body.nil? || !response.body.length.nil?)
      end

      # Does nothing when the application closes the body, because {#finish} reads the rest.
      def close(_error = nil) = nil

      private

      def refuse(status)
        raise @refused = Refusal.new(status)
      end
    end
  end
end
