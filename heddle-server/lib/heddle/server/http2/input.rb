# frozen_string_literal: true

require "protocol/http/body/readable"
require_relative "../refusal"

module Heddle
  class Server
    class HTTP2 < ::Protocol::HTTP2::Server
      # Holds the part of a request's body that has come so far. The client receives credit for the bytes that the
      # application has read.
      #
      # @private
      class Input < ::Protocol::HTTP::Body::Readable
        # Bytes up to which pieces are joined. Each piece of a single byte would take 50 bytes of memory.
        PIECE_SIZE = 4096
        private_constant :PIECE_SIZE

        # @return [Integer, nil] the length that the client has announced
        attr_reader :length

        # @param stream [Stream]
        # @param length [Integer, nil]
        # @param limits [Limits]
        def initialize(stream, length, limits)
          super()
          @stream = stream
          @length = length
          @limits = limits
          @chunks = Thread::Queue.new
          @joining = Thread::Mutex.new
          @last = nil # the piece that others may be joined to: the application has not got it yet
          @aborted = false
        end

        # @return [Boolean]
        def empty? = @chunks.closed? && @chunks.empty? && !@aborted

        # @return [String, nil] nil at its end
        # @raise [IO::TimeoutError]
        def read
          chunk = @chunks.pop(timeout: @limits.stall)
          raise Refusal, 400 if @aborted

          @joining.synchronize { @last = nil if chunk.equal?(@last) }
          @stream.credit(chunk.bytesize) if chunk
          raise IO::TimeoutError, "nothing of the body has come" unless chunk || @chunks.closed?

          chunk
        end

        # -- for the stream ------------------------------------------------------------------------------------------

        # @param chunk [String]
        def write(chunk)
          @joining.synchronize do
            if @last && @last.bytesize + chunk.bytesize <= PIECE_SIZE
              @last << chunk
            else
              @chunks << (@last = chunk)
            end
          end
        end

        # Ends the body: all of it has come.
        def finish = @chunks.close

        # Ends the body, because the client has gone.
        def abort
          @aborted = !@chunks.closed?
          @chunks.close
        end

        # Drops the bytes that nobody has read.
        #
        # @return [Integer] their number
        def drop
          size = 0
          size += @chunks.pop.bytesize until @chunks.empty?
          @chunks.close
          size
        end
      end
    end
  end
end
