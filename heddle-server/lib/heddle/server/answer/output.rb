# frozen_string_literal: true

require "protocol/http/body/stream"
require_relative "answer_body"
require_relative "../stream"

module Heddle
  class Server
    # Takes the body of an answer while the application makes it, with HTTP/1 and HTTP/2. The application may hand this
    # object to a task or to a thread: the answer ends when the object is closed, also if the application's own call has
    # returned before that. A write to an answer that has ended raises an error, because its bytes would stand in front
    # of the next answer.
    #
    # @private
    class Output
      ENDED = "the answer has ended"
      NO_TRAILERS = [].freeze
      private_constant :NO_TRAILERS

      # The stream that a streaming body gets: it reads the body of the request, and writes the answer.
      class Both < ::Protocol::HTTP::Body::Stream
        # Writes several texts, as an IO does. The other two methods return the stream, also as an IO does.
        def write(*parts) = parts.sum { |part| super(part.to_s) }

        def <<(part)
          write(part)
          self
        end

        def flush = self
      end
      private_constant :Both

      # @param answer [Answer] frames the body
      # @param length [Integer, nil] bytes that the head of the answer has announced
      # @param trailers [Trailers, nil]
      def initialize(answer, length, trailers)
        @answer = answer
        @length = @remaining = length
        @trailers = trailers
        @lock = Thread::Mutex.new
        @over = Thread::Queue.new # is closed when the output is closed and its end was sent
        @caller = Fiber.current
        @amid = $!
        @closed = @ended = false
      end

      # Sends a body, and waits for its end.
      #
      # @param body [Protocol::HTTP::Body::Readable]
      # @param input [RequestBody, nil] the body of the request, which a streaming body may read
      # @return [void]
      def send_body(body, input)
        body = AnswerBody.made(body)
        if body.stream?
          body.call(Both.new(input, self))
        else
          AnswerBody.each(body) { |chunk| write(chunk) }
          close_write
        end
        finish
      ensure
        abandon
      end

      # @param chunk [String]
      # @raise [IOError] if the answer has ended
      # @raise [ArgumentError] if that is more than the announced length
      def write(chunk)
        @lock.synchronize do
          raise IOError, ENDED if closed?
          next if chunk.empty?

          count(chunk.bytesize) if @remaining
          @ended = true if @remaining&.zero?
          @answer.send_chunk(chunk, @ended)
          @answer.flush
        end
      rescue *Stream::GONE => e
        @error ||= e
        abandon
        raise
      end

      # Ends the answer. An error that passes through the application's own call may be on its way to cut the answer
      # off. Then the end waits until the call has returned.
      #
      # @param error [Exception, nil] why the answer is cut off
      def close_write(error = nil)
        @lock.synchronize do
          next if closed?

          @closed = true
          @error = error
          end_answer unless error || failing? || @remaining&.positive?
        ensure
          @over.close if @closed
        end
      end

      def closed? = @closed

      # @return [Boolean] whether all of it was sent
      def ended? = @ended

      # Closes the output without an end of the answer.
      def abandon
        @closed = true
        @over.close
      end

      private

      def finish
        @over.pop unless @ended
        raise @error if @error

        AnswerBody.wrong_length(@length, @remaining) if @remaining&.positive?
        end_answer
      end

      def failing? = Fiber.current.equal?(@caller) && !$!.nil? && !$!.equal?(@amid)

      def count(size)
        @remaining -= size
        AnswerBody.wrong_length(@length, @remaining) if @remaining.negative?
      end

      def end_answer
        return if @ended

        trailers = @trailers ? @trailers.fields : NO_TRAILERS # if this raises an error, no end is sent
        @ended = true
        @answer.send_end(trailers)
        @answer.flush
      end
    end
  end
end
