# frozen_string_literal: true

require "protocol/http2/stream"
require_relative "../refusal"
require_relative "../request"
require_relative "../request_body"
require_relative "answer"
require_relative "head"
require_relative "input"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Serves a stream of an HTTP/2 connection: a request and its answer.
      #
      # @private
      class Stream < ::Protocol::HTTP2::Stream
        END_STREAM = ::Protocol::HTTP2::END_STREAM
        private_constant :END_STREAM

        def initialize(*)
          super
          @limits = @connection.server.limits
          @request = @input = @answer = nil
          @received = @uncredited = 0
          @gone = false
        end

        # -- called by protocol-http2 --------------------------------------------------------------------------------

        # Receives the head of a request, or the fields after its body.
        def receive_headers(frame)
          @connection.decode_headers(frame.unpack) if @state == :half_closed_remote # the next block builds on it
          super
          @state = :closed if @gone # it was reset meanwhile
        end

        def process_headers(frame)
          fields = super
          @request ? end_with(fields, frame) : begin_with(fields, frame.end_stream?)
        rescue Head::Malformed
          send_reset_stream(::Protocol::HTTP2::PROTOCOL_ERROR)
        rescue Refusal => e
          refuse(e)
        end

        def receive_data(frame)
          return refuse_data(frame, ::Protocol::HTTP2::STREAM_CLOSED) unless %i[open half_closed_local].include?(@state)

          @local_window.consume(frame.length)
          return refuse_data(frame, ::Protocol::HTTP2::FLOW_CONTROL_ERROR) if @local_window.available.negative?

          data = frame.unpack
          @received += data.bytesize
          return refuse_data(frame, ::Protocol::HTTP2::PROTOCOL_ERROR) if wrong_length?(frame.end_stream?)

          credit(frame.length - data.bytesize) # the padding

          @input.write(data) unless data.empty?
          end_request if frame.end_stream?
        end

        # Frees the bytes and ends the waits of a stream that has ended on both sides.
        def closed(_error = nil)
          return if @gone

          @gone = true
          if @input
            @input.abort
            @connection.credit(@input.drop)
          end
          @answer&.abandon
          @connection.changed
        end

        # Resets the stream. The connection notes this, because the client may not know yet that the stream has ended.
        def send_reset_stream(code = 0)
          return if closed?

          @connection.reset(@id, code)
          close!
        end

        # -- the task ------------------------------------------------------------------------------------------------

        # @return [String] for Heddle.dump
        def description = "#{@request.method} #{@request.path.dump[1..-2]} of #{@connection.connection.client}"

        # Answers the request.
        def serve = @answer.serve

        # @return [Boolean] whether the client has left by now
        def left? = closed?

        # Sends an interim response, unless the answer has begun or the client has gone.
        #
        # @param status [Integer]
        # @param headers [Hash{String => String}]
        def write_interim_response(status, headers = {})
          fields = headers.map { |name, value| Fields.checked(name.to_s.downcase, value.to_s, small: true) }
          @connection.perform do
            send_headers([[":status", status.to_s], *fields]) unless closed? || @answer.answered?
          end
        end

        # Counts bytes of the body that were read, so that the client may send more.
        def credit(size)
          @connection.perform do
            @connection.credit(size)
            @uncredited += size
            next if @uncredited < STREAM_WINDOW / 2 || !%i[open half_closed_local].include?(@state)

            send_window_update(@uncredited)
            @uncredited = 0
          end
        end

        # @return [Boolean] whether bytes can be sent, or never again
        def window? = closed? || (available_frame_size.positive? && @connection.room?)

        # Answers with a refusal, and ends the stream.
        #
        # @param refusal [Refusal]
        def refuse(refusal)
          return if closed?

          text = refusal.reason
          text = "" if @request.nil? || @request.head? || available_frame_size < text.bytesize
          send_headers(refusal.fields, text.empty? ? END_STREAM : 0)
          send_data(text, END_STREAM) unless text.empty?
          send_reset_stream(::Protocol::HTTP2::NO_ERROR)
        end

        private

        # Refuses DATA. Nobody reads it, so it takes no room of the connection's window.
        def refuse_data(frame, code)
          @connection.credit(frame.length)
          send_reset_stream(code)
        end

        def begin_with(fields, ended)
          @head_total = fields.total
          head = Head.new(fields)
          raise Head::Malformed if ended && head.length&.positive?
          raise Refusal, 413 if head.length && head.length > @limits.body_size

          @input = Input.new(self, head.length, @limits) unless ended
          body = @input && RequestBody.new(@input, self, @limits, continue: head.expect)
          @request = Request.new(@connection.connection, self, head.authority, head.method, head.path, "HTTP/2",
                                 head.headers, body)
          @answer = Answer.new(self, @connection.server, @request)
          @connection.start(self)
        end

        # Ends a request with its trailers.
        def end_with(fields, frame)
          raise Head::Malformed unless frame.end_stream? && !wrong_length?(true)

          @request.headers.trailer!
          Head.each_trailer(fields.behind(@head_total)) do |name, value|
            @request.headers.add(name, value, trailer: true)
          end
          @input.finish
        end

        def wrong_length?(ended)
          length = @input.length
          length && (@received > length || (ended && @received < length))
        end

        def end_request
          @input.finish
          @state == :open ? @state = :half_closed_remote : close!
        end
      end
    end
  end
end
