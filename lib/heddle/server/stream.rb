# frozen_string_literal: true

require "openssl"

module Heddle
  class Server
    # The two directions of a connection, as the protocol libraries read and write it. It has its own buffers: they are
    # empty, and take no memory, while the connection is idle.
    #
    # It is also what an application that has upgraded the connection reads and writes.
    #
    # @private
    class Stream
      BLOCK_SIZE = 16 * 1024
      # As many bytes are put together before they are sent.
      FLUSH_SIZE = 64 * 1024
      NOTHING = "".b.freeze
      # What a read or a write raises when the client has gone.
      GONE = [SystemCallError, IOError, OpenSSL::SSL::SSLError].freeze
      # Seconds that a client has to see the last answer while it still sends something, and while it does not.
      LINGER = 10
      LINGER_IDLE = 1
      private_constant :NOTHING, :LINGER, :LINGER_IDLE

      # Texts of several encodings do not go into one String.
      #
      # @param text [String]
      # @return [String] its bytes, which can be appended to other ones
      def self.bytes_of(text) = text.encoding == Encoding::BINARY || text.ascii_only? ? text : text.b

      # @return [IO, OpenSSL::SSL::SSLSocket]
      attr_reader :io
      # @return [Integer] bytes that were written
      attr_reader :written
      # @return [Boolean] whether each {#write} sends its bytes at once
      attr_accessor :sync

      # @param io [IO, OpenSSL::SSL::SSLSocket]
      # @param socket [IO] beneath it
      def initialize(io, socket)
        @io = io
        @socket = socket
        @input = NOTHING
        @position = 0
        @output = String.new
        @written = 0
        @broken = @torn = @writing = @read_to_end = false
      end

      # @return [Integer] bytes that were written, or wait to be sent
      def put = @written + @output.bytesize

      # Each read and write may wait for so long, until the next call of this. A read or write that waits for longer
      # raises an IO::TimeoutError.
      #
      # @param seconds [Numeric, nil]
      def patience=(seconds)
        @deadline = nil
        @socket.timeout = seconds unless @socket.timeout == seconds
      end

      # All reads from now on have so long together.
      #
      # @param seconds [Numeric]
      def within(seconds)
        @deadline = Clock.now + seconds
      end

      # @return [Boolean] whether bytes that were read wait to be taken
      def buffered?
        @position < @input.bytesize || (@io.respond_to?(:pending) && @io.pending.positive?)
      end

      # @return [String] all of them
      def take_buffered
        rest = @input.byteslice(@position..)
        drop_input
        rest
      end

      # @return [Boolean] false at the end of the stream
      def fill?
        chunk = @deadline ? read_within_limit : @io.readpartial(BLOCK_SIZE)
        return end_of_input unless chunk

        if @position == @input.bytesize
          @input = chunk
        else
          drop_taken
          @input << chunk
        end
        @position = 0
        true
      rescue EOFError
        end_of_input
      end

      # @return [Boolean] whether the end of what the client sends was seen
      def read_to_end? = @read_to_end

      # Waits until something has come, or the end: for TLS it may be a part of a record, which {#within} can bound.
      #
      # @param seconds [Numeric]
      # @raise [IO::TimeoutError]
      def await(seconds)
        self.patience = seconds
        @io.equal?(@socket) ? fill? : (@socket.wait_readable(seconds) or raise(IO::TimeoutError, "nothing has come"))
      end

      # Waits for as many bytes as it takes to tell whether these come next.
      #
      # @param bytes [String]
      # @return [Boolean]
      def next?(bytes)
        until (here = @input.byteslice(@position, bytes.bytesize)).bytesize == bytes.bytesize
          return false unless bytes.start_with?(here) && fill?
        end
        here == bytes
      end

      # A line, with its end.
      #
      # @param ending [String]
      # @param limit [Integer] bytes; a longer line is returned in parts
      # @return [String, nil] nil at the end
      def gets(ending = $/, limit = nil, chomp: false)
        from = 0
        until (at = @input.byteindex(ending, @position + from))
          available = @input.bytesize - @position
          return take(limit) if limit && available >= limit

          from = [available - ending.bytesize + 1, 0].max
          next if fill?

          return available.zero? ? nil : take(available)
        end
        size = at + ending.bytesize - @position
        line = take(limit && size > limit ? limit : size)
        chomp ? line.chomp!(ending) || line : line
      end

      # @return [String] as many bytes as there are, at least one
      # @raise [EOFError]
      def readpartial(limit, buffer = nil)
        raise EOFError, "end of file reached" if @position == @input.bytesize && !fill?

        give(take(limit), buffer)
      end

      # So many bytes, or all until the end.
      #
      # @return [String, nil] nil at the end
      def read(length = nil, buffer = nil)
        return give(read_all, buffer) if length.nil?

        until @input.bytesize - @position >= length
          break unless fill?
        end
        bytes = take(length)
        bytes.empty? && length.positive? ? nil : give(bytes, buffer)
      end

      # The bytes are sent when there are many, by {#flush}, or at once with {#sync}.
      def write(*parts)
        size = parts.sum do |part|
          part = part.to_s
          append(part)
          part.bytesize
        end
        flush if @sync
        size
      end

      # The same for one String.
      def append(part)
        @output.bytesize + part.bytesize > FLUSH_SIZE ? send_out(part) : @output << Stream.bytes_of(part)
      end

      def <<(part)
        write(part)
        self
      end

      # @raise [IOError] if an earlier write was interrupted
      def flush
        send_out unless @output.empty? && !@torn
        self
      end

      # Forgets what was not sent yet.
      def drop_output = @output.clear

      # @return [Boolean] whether the client could not be written to
      def broken? = @broken

      # @return [Boolean] whether a write was interrupted: nobody knows how much of it the client has got
      def torn? = @torn

      def close_read
        @socket.close_read if plain?
      end

      def close_write
        flush
        plain? ? @socket.close_write : @io.__send__(:stop) # (it tells the client; Ruby has no public method for that)
      rescue Errno::ENOTCONN
        nil
      end

      # Sends no more, and takes what still comes for a short time: a close while there is something to be read would
      # reset the connection, and the client might never see the last answer (RFC 9112, 9.6).
      #
      # @param limits [Limits] of them, linger_size: bytes that it takes at most, and stall: seconds that the last write
      #   may wait
      def linger(limits)
        close_write
        self.patience = limits.stall
        ends = Clock.now + LINGER
        taken = 0
        while taken < limits.linger_size && Clock.now < ends
          within(LINGER_IDLE)
          break unless fill?

          taken += take_buffered.bytesize
        end
      rescue *GONE
        nil
      end

      def close
        flush unless @broken || @torn || closed?
      ensure
        @io.close
        @closing&.close
      end

      # An application that has upgraded the connection may have handed it to a task or to a thread.
      def await_close
        @closing = Thread::Queue.new
        @closing.pop unless closed?
      end

      # Is asked from time to time.
      #
      # @param now [Float] by Clock
      # @param limits [Limits] of them, rate: bytes a second that the client has to take, and stall: over how long
      # @yieldreturn [Integer, nil] bytes that the client has confirmed so far, if that is known
      # @return [Boolean] whether a client for which a write waits takes too little
      def too_slow?(now, limits)
        @slow_since = nil unless @writing
        return false unless @writing && (taken = yield)

        since, before = (@slow_since ||= [now, taken])
        return false if now - since < limits.stall

        @slow_since = [now, taken]
        taken - before < (now - since) * limits.rate
      end

      # Closes it so that the client does not take what has come for all: TCP resets the connection, and TLS says no
      # word of its end. (A UNIX socket knows no reset.)
      def cut_off
        @socket.setsockopt(::Socket::Option.linger(true, 0))
        @socket.close
      end

      def closed? = @io.closed?
      def sync_close = true

      private

      def plain? = @io.equal?(@socket)

      def end_of_input
        @read_to_end = true
        false
      end

      # A record of TLS may come in pieces, each of which would have the whole patience.
      #
      # @return [String, nil] nil at the end
      def read_within_limit
        if plain?
          wait_within_limit(:wait_readable)
          return @io.readpartial(BLOCK_SIZE)
        end

        while (chunk = @io.read_nonblock(BLOCK_SIZE, exception: false)).is_a?(Symbol)
          wait_within_limit(chunk)
        end
        chunk
      end

      # @param how [Symbol] :wait_readable or :wait_writable
      def wait_within_limit(how)
        return if @socket.public_send(how, [@deadline - Clock.now, 0].max)

        raise IO::TimeoutError, "the request has taken too long"
      end

      def take(size)
        bytes = @input.byteslice(@position, size)
        @position += bytes.bytesize
        drop_input if @position == @input.bytesize
        bytes
      end

      def drop_taken
        @input = @input.byteslice(@position..) unless @position.zero?
      end

      def drop_input
        @input = NOTHING
        @position = 0
      end

      def give(bytes, buffer) = buffer ? buffer.replace(bytes) : bytes

      def read_all
        while fill?; end
        take_buffered
      end

      # What comes behind an interrupted write would be taken for a part of it.
      def send_out(more = nil)
        raise IOError, "an earlier write to the client was interrupted" if @torn

        transmit(more)
      end

      def transmit(more)
        bytes = @output
        @output = String.new
        @writing = true
        @written += more ? @io.write(bytes, more) : @io.write(bytes)
        done = true
      rescue *GONE
        @broken = true
        raise
      ensure
        @writing = false
        @torn = true unless done
      end
    end
  end
end
