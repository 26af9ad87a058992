# frozen_string_literal: true

require "protocol/http/body/completable"
require "protocol/rack"

module Heddle
  class Server
    # Reads the body of an answer: the application's own each or call runs in the task of the request. A read would run
    # it in another fiber, which sees no error, and which nobody waits for.
    #
    # @private
    module AnswerBody
      class << self
        # @param body [Protocol::HTTP::Body::Readable]
        # @return [Protocol::HTTP::Body::Readable] the body without a wrapper that only waits for its close
        def made(body) = body.is_a?(::Protocol::HTTP::Body::Completable) ? body.body : body

        # @return [Boolean] whether the application makes the body while it is sent, perhaps in another task or thread
        def made_meanwhile?(body)
          body = made(body)
          body.stream? || body.is_a?(::Protocol::Rack::Body::Enumerable)
        end

        # @return [String, nil] the transfer-encoding in which the application sends it
        def encoding(body) = made(body).then { |made| made.encoding if made.is_a?(HijackBody) }

        # Yields the chunks of a body. The each of protocol-rack closes the application's body, which must be closed
        # only after the answer, so the application's own each is called.
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
        # @param length [Integer] the length that the client receives
        # @yieldparam chunk [String] not empty
        # @yieldparam last [Boolean] whether this is the last chunk
        # @return [void]
        # @raise [ArgumentError] if the body has another length
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

        # @param left [Integer] the number of bytes that are missing; if negative, of bytes that are too many
        # @raise [ArgumentError]
        def wrong_length(length, left)
          raise ArgumentError, "content-length was #{length}, the body has #{length - left} bytes"
        end
      end
    end
    private_constant :AnswerBody

    # The body of an answer that calls a block once, when it is closed. The class of protocol-http calls the block
    # before that, and closes nothing if the block fails.
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

    # The body that the application sends by a hijack of its answer. The headers of the answer may say where it ends.
    # Then these headers and the bytes of the body are sent as they are.
    #
    # @private
    class HijackBody < ::Protocol::HTTP::Body::Readable
      # @return [Integer, nil]
      attr_reader :length
      # @return [String, nil] the transfer-encoding in which the application sends it
      attr_reader :encoding

      # @param callback [#call]
      # @param fields [Array<Array(String, String)>] headers of the answer; the headers that frame it are taken out
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
