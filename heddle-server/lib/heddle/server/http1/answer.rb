# frozen_string_literal: true

require "protocol/http1"
require_relative "../answer"
require_relative "../answer/http_date"

module Heddle
  class Server
    class HTTP1 < ::Protocol::HTTP1::Connection
      # The answer to a request of HTTP/1: its body has a length, or is sent in chunks, or ends with the connection (RFC
      # 9112, 6).
      #
      # @private
      class Answer < Server::Answer
        # @param session [HTTP1]
        # @param server [Server]
        # @param request [Request]
        def initialize(session, server, request)
          super(server, request)
          @session = session
          @stream = session.stream
          @head_from = @body_from = nil # bytes of the connection that were written before
          @framing = 0 # bytes that were written around the pieces of the body
          @chunked = @plain = false
        end

        # @return [Integer] bytes of the body that were sent
        def sent = @body_from && !@session.hijacked? ? [@stream.written - @body_from - @framing, 0].max : 0

        # @return [Boolean] whether the head has begun
        def answered? = !@head_from.nil?

        # @return [Boolean] whether the end of the connection would look like the end of this answer, which is missing
        def unfinished? = @plain && !@whole

        def send_chunk(chunk, _last)
          return @stream.append(chunk) unless @chunked

          size = chunk.bytesize.to_s(16)
          @framing += size.bytesize + 4
          @stream.write(size, "\r\n", chunk, "\r\n")
        end

        def send_end(trailers)
          return unless @chunked

          lines = trailers.map { |name, value| "#{name}: #{value}\r\n" }
          @framing += 5 + lines.sum(&:bytesize)
          @stream.write("0\r\n", *lines, "\r\n")
        end

        def flush = @stream.flush

        private

        def make
          super
          @session.finish(@request) unless @session.hijacked?
        end

        def over? = @whole || @session.hijacked?

        def take(response)
          @status = response.status
          @session.hijacked? ? close_unsent(response) : super
        end

        # Closes a response that is not sent, because its body may call somebody at its end.
        def close_unsent(response)
          response.close
        rescue ApplicationError => e
          report(e)
        end

        def send_response(response, body)
          @head_from = @stream.written
          @session.persistent = false if ends_connection?(response, body)
          return upgrade(response, body) if response.protocol && body && @request.protocol

          super
          @session.send_end_stream!
        end

        # Returns whether the connection ends with this answer. HTTP/1.0 has no chunks. If the application makes the
        # chunks itself, the server does not know whether they have an end.
        def ends_connection?(response, body)
          return true if @server.stopping? || @request.last? || @request.body&.left_unread?(response)

          body && body.length.nil? && (@request.version == "HTTP/1.0" || AnswerBody.encoding(body))
        end

        # Sends the head. A status below 200 or above 999 cannot be the status of the last answer to a request (RFC
        # 9110, 15).
        def send_head(response, length, _ends)
          status = response.status
          raise ArgumentError, "the status #{status} is none of an answer" unless status.between?(200, 999)

          write_head(response, status)
          @session.write_connection_header(@request.version)
          @stream.append(framing_of(response, length))
          @body_from = @stream.put
        end

        def write_head(response, status)
          @session.write_response(@request.version, status, response.headers)
          @stream.append(HTTPDate.line) unless response.headers.fields.any? { |name,| name == "date" }
        end

        # @return [String] the last lines of the head
        def framing_of(response, length)
          return "content-length: #{length}\r\n\r\n" if announces?(response, length)
          return "\r\n" if length || bodyless?(response)

          encoding = AnswerBody.encoding(response.body)
          return "transfer-encoding: #{encoding}\r\n\r\n" if encoding

          @chunked = @request.version == "HTTP/1.1"
          @plain = !@chunked
          @chunked ? "transfer-encoding: chunked\r\n\r\n" : "\r\n"
        end

        def upgrade(response, body)
          body = AnswerBody.made(body)
          write_head(response, 101)
          stream = @session.write_upgrade_body(response.protocol)
          @body_from = stream.put
          stream.patience = nil
          stream.sync = true
          body.stream? ? body.call(stream) : body.each { |chunk| stream.write(chunk) } && stream.close
          stream.await_close
        end

        def gone? = @stream.broken?

        # The client must see a broken answer also if an interrupted write has sent an unknown part.
        def begun? = (@head_from && @stream.written > @head_from) || @stream.torn?

        def refuse(refusal)
          @stream.drop_output
          @status = refusal.status
          @session.send_refusal(refusal)
          @body_from = @stream.put - (@request.head? ? 0 : refusal.reason.bytesize)
          @framing = 0
          @whole = true
          raise refusal # the connection ends
        end

        def break_off(_error) = raise(Aborted)
      end
      private_constant :Answer
    end
  end
end
