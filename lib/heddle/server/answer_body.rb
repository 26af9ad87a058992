# frozen_string_literal: true

require "protocol/http/body/completable"
require "protocol/rack"

module Heddle
  class Server
    # How the body of an answer is read: the application's own each or call runs in the task of the request. (A read
    # runs it in another fiber, which learns of no error, and is not waited for.)
    #
    # @private
    module AnswerBody
      class << self
        # @param body [Protocol::HTTP::Body::Readable]
        # @return [Protocol::HTTP::Body::Readable] without what only waits for its close
        def made(body) = body.is_a?(::Protocol::HTTP::Body::Completable) ? body.body : body

        # @return [Boolean] whether the application makes it while it is sent, perhaps in another task or thread
        def made_meanwhile?(body)
          body = made(body)
          body.stream? || body.is_a?(::Protocol::Rack::Body::Enumerable)
        end

        # @return [String, nil] the transfer-encoding in which the application sends it
        def encoding(body) = made(body).then { |made| made.encoding if made.is_a?(HijackBody) }

        # (The application's body is closed behind the answer, so not by the each of protocol-rack.)
        #
        # @param body [Protocol::HTTP::Body::Readable]
        # @yieldparam chunk [String]
        # @return [void]
        def each(body, &)
          body = made(body)
          return body.body.each(&) if body.is_a?(::Protocol::Rack::Body::Enumerable)

          while (chunk = body.read)
            yield chunk
          end
        end

        # @param body [Protocol::HTTP::Body::Readable]
        # @param length [Integer] of which the client is told
        # @yieldparam chunk [String] not empty
        # @yieldparam last [Boolean] whether that is all
        # @return [void]
        # @raise [ArgumentError] if there is more or less
        def each_of(body, length)
          left = length
          each(body) do |chunk|
            next if chunk.empty?

            left -= chunk.bytesize
            wrong_length(length, left) if left.negative?
            yield(chunk, left.zero?)
          end
          wrong_length(length, left) unless left.zero?
        end

        # @param left [Integer] bytes that are missing; negative: that are too many
        # @raise [ArgumentError]
        def wrong_length(length, left)
          raise ArgumentError, "content-length was #{length}, the body has #{length - left} bytes"
        end
      end
    end
    private_constant :AnswerBody

    # The body of an answer whose end is told to somebody, once, when it is closed. (That of protocol-http tells it
    # before, and closes nothing if that fails.)
    #
    # @private
    class CompletedBody < ::Protocol::HTTP::Body::Completable
      # @param body [Protocol::HTTP::Body::Readable]
      # @yield [error] why it was not sent to its end, or nil
      def initialize(body, &told)
        super(body, told)
      end

      def close(error = nil)
        told = @callback
        @callback = nil
        body.close(error)
      rescue ApplicationError => e
        raise(error = e)
      ensure
        told&.call(error)
      end
    end
    private_constant :CompletedBody

    # What the application sends by a hijack of its answer. The headers of the answer may say where it ends: then they
    # are sent as they are.
    #
    # @private
    class HijackBody < ::Protocol::HTTP::Body::Readable
      # @return [Integer, nil]
      attr_reader :length
      # @return [String, nil] the transfer-encoding in which the application sends it
      attr_reader :encoding

      # @param callback [#call]
      # @param fields [Array<Array(String, String)>] headers of the answer; those that frame it are taken out
      def initialize(callback, fields)
        super()
        @callback = callback
        framing, others = fields.partition { |name,| %w[content-length transfer-encoding].include?(name) }
        fields.replace(others)
        @encoding = framing.assoc("transfer-encoding")&.last
        length = framing.assoc("content-length")&.last
        @length = Integer(length, 10) if length && !@encoding
      end

      def stream? = true
      def call(stream) = @callback.call(stream)
    end
    private_constant :HijackBody
  end
end
