# frozen_string_literal: true

require "protocol/http2/server"
require "protocol/http2/framer"
require_relative "http2/allowance"
require_relative "http2/field_list"
require_relative "http2/receiving"
require_relative "http2/stream"
require_relative "http2/wire"
require_relative "unsliced"

module Heddle
  class Server
    # Serves the requests of an HTTP/2 connection. Each request is a stream with a task of its own (RFC 9113).
    # protocol-http2 knows the frames and the states of streams.
    #
    # Two more tasks serve the connection while it is busy: one sends the frames of the streams, and the other one
    # reads frames ({Receiving}).
    #
    # @private
    class HTTP2 < ::Protocol::HTTP2::Server
      include Receiving

      # The tasks of a connection share the tables of header fields, the windows and the list of the streams. No time
      # slice ends in the midst of a change.
      Unsliced.libraries_of("Protocol::HTTP2::Connection", "Protocol::HPACK::Context")

      # Seconds without a stream after which the connection gives back its tasks.
      PARK_AFTER = 0.5
      # Seconds that the client has to learn that the server ends, before new streams are refused.
      GOAWAY_TIME = 1
      GOAWAY_PING = "heddle-g"
      ALL_STREAMS = 0x7fffffff
      # Bytes that a client may send on a stream, and on the connection, before the application has read them.
      STREAM_WINDOW = 256 * 1024
      CONNECTION_WINDOW = 1024 * 1024
      # The most bytes of header fields that are remembered for the next answers, even if a client allows more.
      HEADER_TABLE = 4096
      # A block that another thread wants to be called in the thread of the connection.
      Job = Struct.new(:block, :answer) do
        def run
          answer << [[block.call], nil]
        rescue StandardError => e
          answer << [nil, e]
        ensure
          answer.close
        end
      end
      private_constant :Job, :PARK_AFTER, :GOAWAY_TIME, :GOAWAY_PING, :ALL_STREAMS, :STREAM_WINDOW, :CONNECTION_WINDOW,
                       :HEADER_TABLE

      # @return [Connection]
      attr_reader :connection
      # @return [Server]
      attr_reader :server

      # @param connection [Connection] the connection whose requests it serves
      # @param stream [Server::Stream] the bytes of the connection
      def initialize(connection, stream)
        @bytes = stream
        @wire = Wire.new(stream) { tell_sender }
        super(::Protocol::HTTP2::Framer.new(@wire))
        @connection = connection
        @server = connection.server
        @limits = @server.limits
        @news = Thread::Queue.new # for the task that sends
        @waiting = {}.compare_by_identity # queues of the tasks that wait for a window or for room
        @running = 0 # tasks of streams
        @uncredited = 0 # bytes that were read, and that the client has no credit for yet
        begin_receiving
      end

      # Serves requests as long as they come.
      #
      # @return [Symbol] :idle when no request has come for a while, or :closed
      def run
        Heddle.scope { |scope| serve_streams(scope).tap { |outcome| leave if outcome == :closed } }
      rescue IOError, SystemCallError
        :closed
      end

      # @return [nil] because its streams have descriptions
      def description = nil

      # Does nothing: the task that reads sees that the client has left.
      def look_after = nil

      # Lets the open streams end, and takes no new ones. The client is notified in two steps, so that the streams that
      # it has opened before it could know are still served (RFC 9113, 6.8).
      def drain
        return if @draining || @ended || closed?

        @draining = Clock.now + GOAWAY_TIME
        send_last_stream(ALL_STREAMS)
        send_ping(GOAWAY_PING)
      end

      # Notifies the client that an idle connection is closed, as far as that is possible at once.
      def farewell
        return if @refusing || @ended || closed?

        send_last_stream(@remote_stream_id)
        @bytes.io.write_nonblock(@wire.take, exception: false)
      rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
        nil
      end

      # -- for the streams -------------------------------------------------------------------------------------------

      # Starts the task of a stream.
      #
      # @param stream [Stream]
      def start(stream)
        @running += 1
        @scope.spawn(isolated: true, name: stream.method(:description)) do
          stream.serve
        ensure
          @running -= 1
          tell_sender
        end
      rescue FiberError # no stack can be allocated for the task
        @running -= 1
        stream.send_reset_stream(::Protocol::HTTP2::REFUSED_STREAM)
      end

      # Calls the block in the thread of the connection, because only that thread may change its state. The block of
      # another thread becomes a task there.
      #
      # @return [Object] the value of the block
      # @raise [IOError] if the connection has ended
      def perform(&block)
        return yield if @thread.equal?(Thread.current)

        answer = Thread::Queue.new
        @news << Job.new(block, answer)
        value, error = answer.pop
        raise error if error
        raise IOError, "the connection has ended" unless value

        value.first
      rescue ClosedQueueError
        raise IOError, "the connection has ended"
      end

      # Waits until the block returns true.
      #
      # @param seconds [Numeric]
      # @raise [IO::TimeoutError] if that takes too long
      def wait_until(seconds = @limits.stall)
        limit = Clock.now + seconds
        until yield
          queue = Thread::Queue.new
          @waiting[queue] = true
          queue.pop(timeout: [limit - Clock.now, 0].max) or raise(IO::TimeoutError, "the client reads nothing")
        end
      ensure
        @waiting.delete(queue) if queue
      end

      # Wakes the tasks that wait in {#wait_until}: a window has grown, there is room, or a stream has ended.
      def changed
        return if @waiting.empty?

        @waiting.each_key { |queue| queue << true }
        @waiting.clear
      end

      # @return [Boolean] whether frames can be added to the frames that wait to be sent
      def room? = @wire.room?

      # Compresses the fields of a head.
      #
      # @param fields [Array<Array(String, String)>]
      # @return [String] the compressed block
      def encode_headers(fields)
        limit = [@remote_settings.header_table_size, HEADER_TABLE].min
        compressor = ::Protocol::HPACK::Compressor.new(String.new, @encoder, table_size_limit: limit)
        if @least_table_size # the client has dropped what was beyond it (RFC 7541, 4.2)
          compressor.encode([], @least_table_size) if @least_table_size < @encoder.table_size
          @least_table_size = nil
        end
        compressor.encode(fields)
      end

      # Lets the client send this number of bytes more. The client is notified when they are half of the window.
      def credit(size)
        @uncredited += size
        return if @uncredited < CONNECTION_WINDOW / 2

        send_window_update(@uncredited)
        @uncredited = 0
      end

      # Resets a stream from this side. The client may send more on it before it knows, so the reset is noted.
      def reset(id, code)
        note_reset(id, code)
        frame = ::Protocol::HTTP2::ResetStreamFrame.new(id)
        frame.pack(code)
        write_frame(frame)
      end

      private

      def serve_streams(scope)
        @scope = scope
        @thread = Thread.current
        start_reading
        drain if @server.stopping?
        outcome = nil
        outcome = step until outcome
        outcome
      ensure
        unless outcome == :idle
          @ended = true
          @streams.each_value(&:close)
          @streams.clear
          changed
          end_jobs
        end
      end

      # Ends the connection. The client sees the end at once, also while requests still run.
      def leave
        @reader&.cancel&.wait
        @bytes.linger(@limits)
      end

      # Takes one step of the sending task.
      #
      # @return [Symbol, nil] how the connection ends, or nil if it does not end
      def step
        if @wire.waiting?
          @wire.send_out
          changed
        elsif @ended || (@refusing && @running.zero?)
          return :closed
        elsif @draining && !@refusing && @draining <= Clock.now
          refuse_streams
        else
          return hear(@news.pop(timeout: patience))
        end
        nil
      end

      # @param news [Job, true, nil]
      def hear(news)
        return (:idle if !@draining && park?) unless news

        @scope.spawn(isolated: true, name: "write of another thread") { news.run } if news.is_a?(Job)
        nil
      end

      def patience
        return PARK_AFTER if @running.zero? && !@draining

        @draining && !@refusing ? [@draining - Clock.now, 0].max : nil
      end

      def tell_sender
        @news << true if @news.empty? && !@news.closed?
      end

      def end_jobs
        @news.close
        while (news = @news.pop)
          news.answer.close if news.is_a?(Job)
        end
      end

      # Ends the task of the reader, if the connection has nothing to do, and returns whether it is idle now.
      def park?
        return false unless @running.zero? && @awaiting

        @parking = true
        @reader.cancel.wait
        @parking = false
        return true if @running.zero? && !@ended && !@bytes.buffered? && !@wire.waiting?

        start_reading # something has come just now
        false
      end

      def start_reading
        return if @ended

        @reader = @scope.spawn(background: true, name: "frames") { receive }
      end

      def refuse_streams
        @refusing = true
        send_last_stream(@remote_stream_id)
      end

      # Sends a GOAWAY with the last stream that is served. The method of protocol-http2 would also close the
      # connection.
      def send_last_stream(id)
        frame = ::Protocol::HTTP2::GoawayFrame.new
        frame.pack(id, ::Protocol::HTTP2::NO_ERROR, "")
        write_frame(frame)
      end
    end
  end
end
