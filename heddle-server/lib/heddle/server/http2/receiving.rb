# frozen_string_literal: true

require_relative "allowance"
require_relative "decompressor"
require_relative "field_list"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Handles the frames that come on an HTTP/2 connection. protocol-http2 reads them. This module decides what
      # protocol-http2 leaves open, and limits what a server on the open internet has to limit.
      #
      # @private
      module Receiving
        # The number of streams that are remembered after this side has reset them, because the client may send more on
        # them before it knows.
        RESETS_REMEMBERED = 256
        # Limits for frames that cost the client little: how many may come at once, and then how many a second.
        BURST = 1000
        PER_SECOND = 50
        # A client sends WINDOW_UPDATEs for the DATA that it gets (RFC 9113, 6.9): for each frame one of the stream and
        # one of the connection, and perhaps more for a large frame. WINDOW_UPDATEs without such DATA count as frames
        # that cost the client little, too.
        UPDATES_FOR_FRAME = 2
        BYTES_FOR_UPDATE = 512
        UPDATES_MAX = 10_000
        # Errors of a client for which its stream is reset. Each counts as if the client had reset the stream itself.
        FAULTS = [::Protocol::HTTP2::PROTOCOL_ERROR, ::Protocol::HTTP2::FLOW_CONTROL_ERROR,
                  ::Protocol::HTTP2::STREAM_CLOSED].freeze
        PRIORITY = 2
        private_constant :RESETS_REMEMBERED, :BURST, :PER_SECOND, :UPDATES_FOR_FRAME, :BYTES_FOR_UPDATE, :UPDATES_MAX,
                         :FAULTS, :PRIORITY

        # -- called by protocol-http2 --------------------------------------------------------------------------------

        # Reads a frame. Many small frames may come at once, so each one spends a part of the turn.
        def read_frame
          Heddle.checkpoint
          super do |frame|
            check_size(frame)
            @allowance.take if cheap?(frame)
            yield frame if block_given?
          end
        end

        # Begins a new stream, or ends the request of an open stream.
        def receive_headers(frame)
          id = frame.stream_id
          if @streams[id]
            super
          elsif !valid_remote_stream_id?(id)
            raise ::Protocol::HTTP2::ProtocolError, "a client cannot open stream #{id}"
          elsif id <= @remote_stream_id
            late_headers(frame)
          else
            receive_request(frame, id)
          end
        end

        def receive_data(frame)
          id = frame.stream_id
          consume_local_window(frame)
          raise ::Protocol::HTTP2::FlowControlError, "too much data" if @local_window.available.negative?
          return @streams[id].receive_data(frame) if @streams[id]
          raise ::Protocol::HTTP2::ProtocolError, "data for stream #{id}" unless closed_stream_id?(id)

          credit(frame.length)
          reset(id, ::Protocol::HTTP2::STREAM_CLOSED) unless @resets.include?(id)
        end

        def receive_reset_stream(frame)
          id = frame.stream_id
          raise ::Protocol::HTTP2::ProtocolError, "stream #{id} is idle" if id.zero? || idle_stream_id?(id)

          @streams[id]&.receive_reset_stream(frame)
        end

        def receive_settings(frame)
          raise ::Protocol::HTTP2::FlowControlError, "the window is too large" if window_too_large?(frame)

          note_table_sizes(frame)
          super
          changed
        end

        def receive_window_update(frame)
          super
          changed
        end

        def receive_ping(frame)
          super
          refuse_streams if frame.acknowledgement? && @draining && !@refusing && frame.unpack == GOAWAY_PING
        end

        # Handles a GOAWAY: the client opens no further streams, or has found an error.
        def receive_goaway(frame)
          raise ::Protocol::HTTP2::ProtocolError, "a GOAWAY of a stream" unless frame.stream_id.zero?

          _, code, message = frame.unpack
          raise ::Protocol::HTTP2::GoawayError.new(message, code) unless code.zero?
        end

        # Ignores priorities: the server does not use them.
        def receive_priority_update(_frame) = nil

        # Does nothing: a stream that waits finds out itself whether it may send.
        def consume_window(*) = nil

        # @return [FieldList]
        def decode_headers(data)
          if data.bytesize > @limits.head_size
            raise ::Protocol::HTTP2::ProtocolError.new("too large", ::Protocol::HTTP2::ENHANCE_YOUR_CALM)
          end

          Decompressor.new(data, @decoder, table_size_limit: @local_settings.header_table_size)
            .decode(FieldList.new(@limits))
        rescue NoMethodError, TypeError, RangeError, EncodingError # raised for bytes that are missing
          raise ::Protocol::HPACK::CompressionError, "malformed"
        end

        # Counts the DATA that this side has sent, and the WINDOW_UPDATEs that the client may send for it.
        def sent_data(size)
          @updates = [@updates + UPDATES_FOR_FRAME + (size / BYTES_FOR_UPDATE), UPDATES_MAX].min
        end

        private

        def begin_receiving
          @updates = 0 # WINDOW_UPDATEs that the client may send
          @allowance = Allowance.new(BURST, PER_SECOND)
          @resets = {} # ids of streams
          @least_table_size = nil # the smallest that the client has allowed since the last answer
          @begun = @ended = @awaiting = @parking = @draining = @refusing = false
        end

        # Reads frames until the end of the connection.
        def receive
          while await_frame
            wait_until { @ended || room? } # a client that does not read need not send, either
            break if @ended

            @bytes.within(@limits.stall)
            @begun ? read_frame : begin_connection
          end
        rescue ::Protocol::HTTP2::Error, ::Protocol::HPACK::Error, IOError, SystemCallError
          nil # the client was notified, or has gone
        ensure
          unless @parking
            @ended = true
            tell_sender
          end
        end

        # @return [Boolean] false: the connection has ended, or becomes idle
        def await_frame
          @awaiting = true
          until @bytes.buffered?
            begin
              @bytes.patience = @limits.stall
              return false unless @bytes.fill?
            rescue IO::TimeoutError
              next # the client may be silent while it waits for an answer
            end
          end
          !@parking
        ensure
          @awaiting = false
        end

        def begin_connection
          read_connection_preface([[::Protocol::HTTP2::Settings::MAXIMUM_CONCURRENT_STREAMS, @limits.streams],
                                   [::Protocol::HTTP2::Settings::INITIAL_WINDOW_SIZE, STREAM_WINDOW],
                                   [::Protocol::HTTP2::Settings::MAXIMUM_HEADER_LIST_SIZE, @limits.head_size],
                                   [::Protocol::HTTP2::Settings::NO_RFC7540_PRIORITIES, 1]])
          @begun = true
          send_window_update(CONNECTION_WINDOW - @local_window.capacity)
        end

        # Checks that a frame has the bytes that protocol-http2 expects without a check.
        def check_size(frame)
          needed = 0
          needed += 1 if frame.respond_to?(:padded?) && frame.padded?
          needed += 5 if frame.is_a?(::Protocol::HTTP2::HeadersFrame) && frame.priority?
          needed = 8 if frame.is_a?(::Protocol::HTTP2::GoawayFrame)
          needed = 4 if frame.is_a?(::Protocol::HTTP2::PriorityUpdateFrame)
          raise ::Protocol::HTTP2::FrameSizeError, "the frame is too short" if frame.length < needed

          check_priority(frame) if frame.type == PRIORITY
        end

        def check_priority(frame)
          raise ::Protocol::HTTP2::FrameSizeError, "the frame has a wrong length" unless frame.length == 5
          raise ::Protocol::HTTP2::ProtocolError, "a priority of no stream" if frame.stream_id.zero?
        end

        # Returns whether a frame makes work and carries nothing.
        def cheap?(frame)
          case frame
          when ::Protocol::HTTP2::HeadersFrame then false
          when ::Protocol::HTTP2::DataFrame then !frame.length.positive? && !frame.end_stream?
          when ::Protocol::HTTP2::WindowUpdateFrame then !update_for_data?
          else true
          end
        end

        def update_for_data?
          return false unless @updates.positive?

          @updates -= 1
          true
        end

        def receive_request(frame, id)
          @updates += 1 # browsers open the window of a stream when they open the stream
          @remote_stream_id = id unless @refusing
          if @refusing || @running >= @limits.streams
            decode_headers(frame.unpack) # the next block builds on it
            return if @refusing

            @allowance.take
            reset(id, ::Protocol::HTTP2::REFUSED_STREAM)
          else
            Stream.create(self, id).receive_headers(frame)
          end
        end

        # Handles the head of a stream that has ended. The client may not know that yet.
        def late_headers(frame)
          decode_headers(frame.unpack)
          return if @resets.include?(frame.stream_id)

          raise ::Protocol::HTTP2::StreamClosed, "stream #{frame.stream_id} has ended"
        end

        def note_reset(id, code)
          @allowance.take if FAULTS.include?(code)
          @resets[id] = true
          @resets.shift if @resets.size > RESETS_REMEMBERED
        end

        def note_table_sizes(frame)
          return if frame.acknowledgement?

          sizes = frame.unpack.filter_map { |key, size| size if key == ::Protocol::HTTP2::Settings::HEADER_TABLE_SIZE }
          @least_table_size = [*sizes, *@least_table_size].min
        end

        def window_too_large?(frame)
          !frame.acknowledgement? && frame.unpack.any? do |key, value|
            key == ::Protocol::HTTP2::Settings::INITIAL_WINDOW_SIZE &&
              value > ::Protocol::HTTP2::MAXIMUM_ALLOWED_WINDOW_SIZE
          end
        end
      end
    end
  end
end
