# frozen_string_literal: true

require "protocol/http2/stream"
require_relative "../answer_body"
require_relative "../http_date"
require_relative "../refusal"
require_relative "../request_body"
require_relative "head"
require_relative "input"
require_relative "output"
require_relative "request"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Serves a stream of an HTTP/2 connection: a request and its answer.
      #
      # @private
      class Stream < ::Protocol::HTTP2::Stream
        # Raised when the client has gone, or wants no answer any more.
        class Gone < IOError; end

        GONE = "the client has gone, or wants no answer any more"
        STATUS = ":status"
        END_STREAM = ::Protocol::HTTP2::END_STREAM
        private_constant :Gone, :GONE, :STATUS, :END_STREAM

        # @return [Integer] bytes of the answer's body that were sent
        attr_reader :sent

        def initialize(*)
          super
          @server = @connection.server
          @limits = @server.limits
          @request = @input = @output = nil
          @received = @sent = @uncredited = @waited = 0
          @answered = nil # the status of the answer
          @gone = @whole = @torn = false
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
          answer_at_once(e)
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
          @output&.abandon unless @output&.ended?
          @request&.watched&.left! unless @whole
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
        def serve
          started = Clock.now
          answer
        ensure
          @request.watched&.over!
          @server.answered(@request, @answered, started)
        end

        def answered? = !@answered.nil? || closed?

        # @param status [Integer]
        # @param headers [Hash{String => String}]
        def write_interim_response(status, headers = {})
          fields = headers.map { |name, value| field_of(name.to_s.downcase, value.to_s) }
          @connection.perform do
            send_headers([[STATUS, status.to_s], *fields]) unless answered?
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

        # Sends a part of the answer's body, and waits where the windows of the client or the other streams leave no
        # room.
        #
        # @param chunk [String]
        # @param last [Boolean]
        def send_chunk(chunk, last: false)
          @connection.perform { send_pieces(chunk, last) }
        end

        # Ends the answer after its body.
        #
        # @param trailers [Array<Array(String, String)>]
        def send_end(trailers = [])
          @connection.perform do
            raise Gone, GONE if closed?

            check_torn
            @whole = true
            trailers.empty? ? send_data(nil, END_STREAM) : send_headers(trailers, END_STREAM)
          end
        end

        private

        def send_pieces(chunk, last)
          check_torn
          from = 0
          while from < chunk.bytesize
            size = [window, chunk.bytesize - from].min
            part = size == chunk.bytesize ? chunk : chunk.byteslice(from, size)
            from += size
            @sent += size
            @whole = last && from == chunk.bytesize # a later error takes nothing from the answer
            send_data(part, @whole ? END_STREAM : 0)
            @connection.sent_data(size)
          end
        ensure
          @torn = true if from && from < chunk.bytesize
        end

        def answer
          @server.handle(@request) do |response|
            refuse_body(response)
            write(response)
          end
        rescue Refusal => e
          answer_at_once(e) unless @whole
        rescue Gone
          nil
        rescue ApplicationError => e
          @whole ? @server.report(e, @request) : give_up(e)
        ensure
          # The stream is still open if the application has not read all of the body, or if its task was ended in the
          # midst of the answer.
          send_reset_stream(@whole ? ::Protocol::HTTP2::NO_ERROR : ::Protocol::HTTP2::INTERNAL_ERROR)
        end

        # -- what comes in -------------------------------------------------------------------------------------------

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
          @request = Request.new(self, @connection.connection, head, body)
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

        # -- what goes out -------------------------------------------------------------------------------------------

        # Waits until bytes can be sent.
        #
        # @return [Integer] bytes that can be sent now, at least one
        def window
          wait_for_window unless window?
          raise Gone, GONE if closed?

          available_frame_size
        end

        def window? = closed? || (available_frame_size.positive? && @connection.room?)

        # Waits for the client's window, for a limited time in the whole answer. Otherwise a client that takes a little
        # from time to time would keep the answer for ever.
        def wait_for_window
          began = Clock.now
          @connection.wait_until([@limits.stall, @limits.stall + @sent.fdiv(@limits.rate) - @waited].min) { window? }
          @waited += Clock.now - began
        rescue IO::TimeoutError
          send_reset_stream(::Protocol::HTTP2::CANCEL)
          raise Gone, GONE
        end

        # Refuses a request whose body was refused while the application read it, whatever the application answers.
        def refuse_body(response)
          refused = @request.refused or return
          response.close
          raise refused
        end

        def write(response)
          body = response.body
          raise Gone, GONE if closed?

          length = length_of(body)
          @request.body&.invite_for(response)
          fields = fields_of(response, length)
          @answered = response.status
          if body.nil? || @request.head? || bodyless?(response.status)
            send_headers(fields, END_STREAM)
          else
            send_headers(fields)
            AnswerBody.made_meanwhile?(body) || length.nil? ? write_streamed(body, length) : write_sized(body, length)
          end
          @whole = true
        rescue ApplicationError => e
          raise(error = e)
        ensure
          body&.close(error)
        end

        # @return [Integer, nil] the length of the body; nil: it is not known, or trailers follow
        def length_of(body)
          return 0 unless body

          body.length unless @request.trailers
        end

        def fields_of(response, length)
          status = response.status
          raise ArgumentError, "the status #{status} is none of HTTP/2" unless status.between?(200, 999)
          raise ArgumentError, "HTTP/2 has no transfer-encoding" if response.body && AnswerBody.encoding(response.body)

          dated = false
          fields = [[STATUS, status.to_s]]
          response.headers.each do |name, value|
            dated ||= name == "date"
            fields << field_of(name, value)
          end
          fields << ["date", HTTPDate.value] unless dated
          fields << ["content-length", length.to_s] if length && !bodyless?(status) && !(length.zero? && @request.head?)
          fields
        end

        # Checks a field before the block is made. An error in the midst of a block would leave the two sides with
        # different tables of headers.
        def field_of(name, value) = Fields.checked(name, value, small: true)

        def bodyless?(status) = [204, 304].include?(status)

        def write_sized(body, length)
          AnswerBody.each_of(body, length) { |chunk, last| send_chunk(chunk, last:) }
          send_end if length.zero?
        end

        # Raises an error if a write was interrupted, because the bytes of that write are missing in the answer.
        def check_torn
          raise IOError, "an earlier write to the client was interrupted" if @torn
        end

        def write_streamed(body, length)
          @output = Output.new(self, length, @request.trailers)
          @output.send_body(body, @request.body)
          check_torn
        end

        # @param refusal [Refusal]
        def answer_at_once(refusal)
          return if closed?
          return send_reset_stream(::Protocol::HTTP2::CANCEL) if @answered

          @answered = refusal.status
          text = refusal.reason
          text = "" if @request.nil? || @request.head? || available_frame_size < text.bytesize
          send_headers(refusal.fields, text.empty? ? END_STREAM : 0)
          send_data(text, END_STREAM) unless text.empty?
          send_reset_stream(::Protocol::HTTP2::NO_ERROR)
        end

        # Gives up an answer after an error.
        #
        # @param error [StandardError] an error of the application's body or headers, or an error because the client has
        #   gone
        def give_up(error)
          return if closed?

          @server.report(error, @request)
          @answered ? send_reset_stream(::Protocol::HTTP2::INTERNAL_ERROR) : answer_at_once(Refusal.new(500))
        end
      end
    end
  end
end
