# frozen_string_literal: true

require_relative "answer/answer_body"
require_relative "application"
require_relative "clock"
require_relative "answer/output"
require_relative "refusal"

module Heddle
  class Server
    # The answer to a request: calls the application, sends the head and the body of its response, and ends the answer,
    # also after an error.
    #
    # HTTP/1 and HTTP/2 have a subclass each, which frames the answer. It defines these methods:
    #
    # - send_head(response, length, ends): sends the head. The length is nil if it is not known before, or if trailers
    #   follow. If ends is true, no body follows.
    # - send_chunk(chunk, last), send_end(trailers) and flush: send the body. They may be called in other tasks and in
    #   other threads.
    # - gone? and begun?: whether the client has gone, and whether a part of the answer was sent.
    # - refuse(refusal): sends a refusal in place of the answer.
    # - break_off(error): ends an answer of which a part was sent, so that the client sees that the rest is missing.
    # - sent: the bytes of the body that were sent.
    #
    # @private
    class Answer
      BODYLESS = [204, 304].freeze
      private_constant :BODYLESS

      # @return [Request]
      attr_reader :request
      # @return [Integer, nil] nil if there was no answer
      attr_reader :status

      # @param server [Server]
      # @param request [Request]
      def initialize(server, request)
        @server = server
        @request = request
        @status = @output = nil
        @whole = false
      end

      # Answers the request.
      def serve
        started = Clock.now
        make
      ensure
        @request.answered!
        @request.watched&.over!
        @server.answered(self, started)
      end

      # Ends the waits for an answer that nobody receives any more.
      def abandon
        @request.answered!
        @output&.abandon unless @output&.ended?
        @request.watched&.left! unless @whole
      end

      private

      def make
        @server.handle(@request) { |response| take(response) }
      rescue ApplicationError => e
        # The error may come from a task that the application has spawned. If the whole answer was sent, nothing of it
        # is missing because of this error.
        over? ? report(e) : give_up(e)
      end

      def over? = @whole

      # Takes the response of the application. A request whose body was refused while the application read it is
      # refused, whatever the application answers.
      def take(response)
        return write(response) unless (refused = @request.refused)

        response.close
        raise refused
      end

      def write(response)
        body = response.body
        @request.answered!
        @request.body&.invite_for(response)
        send_response(response, body)
      rescue ApplicationError => e
        raise(error = e)
      ensure
        body&.close(error)
      end

      def send_response(response, body)
        length = body ? (body.length unless @request.trailers) : 0
        ends = body.nil? || @request.head? || bodyless?(response)
        send_head(response, length, ends)
        send_body(body, length) unless ends
        flush
        @whole = true
      end

      def send_body(body, length)
        flush unless body.ready? # the body may take its time
        if length && !AnswerBody.made_meanwhile?(body)
          send_sized(body, length)
        else
          @output = Output.new(self, length, @request.trailers)
          @output.send_body(body, @request.body)
        end
      end

      def send_sized(body, length)
        AnswerBody.each_of(body, length) do |chunk, last|
          send_chunk(chunk, last)
          flush unless body.ready?
        end
        send_end([]) if length.zero?
      end

      # Returns whether the head announces this length. Many applications leave out the body of an answer to HEAD. Its
      # length is not known then, and must not be sent (RFC 9110, 8.6).
      def announces?(response, length) = length && !bodyless?(response) && !(length.zero? && @request.head?)

      def bodyless?(response) = BODYLESS.include?(response.status)

      # Gives up an answer. If a part of it was sent, it is broken off. Otherwise the client gets a 500, or the status
      # of the refusal.
      #
      # @param error [Exception] an error of the application, of its body or headers, an error because the client has
      #   gone, or a refusal
      def give_up(error)
        return break_off(error) if gone?

        report(error)
        if begun?
          break_off(error)
        else
          refuse(error.is_a?(Refusal) ? error : Refusal.new(500))
        end
      end

      # Reports an error of the application. A refusal is not an error of the application.
      def report(error) = error.is_a?(Refusal) || @server.report(error, @request)
    end
  end
end
