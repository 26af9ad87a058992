# frozen_string_literal: true

require "openssl"

module Heddle
  class Server
    # Reads and writes both directions of a connection, for the protocol libraries. It has its own buffers. While the
    # connection is idle, they are empty and take no memory.
    #
    # An application that has upgraded the connection reads and writes this object, too.
    #
    # @private
    class Stream
      BLOCK_SIZE = 16 * 1024
      # Bytes that are collected before they are sent.
      FLUSH_SIZE = 64 * 1024
      NOTHING = "".b.freeze
      # Errors that a read or a write raises when the client has gone.
      GONE = [SystemCallError, IOError, OpenSSL::SSL::SSLError].freeze
      # Seconds that a client has to see the last answer: while it still sends something, and while it sends nothing.
      LINGER = 10
      LINGER_IDLE = 1
      private_constant :NOTHING, :LINGER, :LINGER_IDLE

      # Returns the bytes of a text, which can be appended to other bytes. Texts of several encodings do not go into one
      # String.
      #
      # @param text [String]
      # @return [String] the bytes of the text
      def self.bytes_of(text) = text.encoding == Encoding::BINARY || text.ascii_only? ? text : text.b

      # @return [IO, OpenSSL::SSL::SSLSocket]
      attr_reader :io
      # @return [Integer] bytes that were written
      attr_reader :written
      # @return [Boolean] whether each {#write} sends its bytes at once
      attr_accessor :sync

      # @param io [IO, OpenSSL::SSL::SSLSocket]
      # @param socket [IO] the socket beneath the io
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

      # Sets how long each read and write may wait, until this is set again. A read or write that waits for longer
      # raises an IO::TimeoutError.
      #
      # @param seconds [Numeric, nil]
      def patience=(seconds)
        @deadline = nil
        @socket.timeout = seconds unless @socket.timeout == seconds
      end

      # Sets how long all reads from now on may take together.
      #
      # @param seconds [Numeric]
      def within(seconds)
        @deadline = Clock.now + seconds
      end

      # @return [Boolean] whether bytes that were read wait to be taken
      def buffered?
        @position < @input.bytesize || (@io.respond_to?(:pending) && @io.pending.positive?)
      end

      # @return [String] all bytes that were read and wait to be taken
      def take_buffered
        rest = @input.byteslice(@position..)
        drop_input
        rest
      end

      # Reads some bytes into the buffer.
      #
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

      # @return [Boolean] whether the client's bytes were read to their end
      def read_to_end? = @read_to_end

      # Waits until bytes have come, or the end. With TLS the bytes may be a part of a record, and {#within} can limit
      # the time for the rest of it.
      #
      # @param seconds [Numeric]
      # @raise [IO::TimeoutError]
      def await(seconds)
        self.patience = seconds
        @io.equal?(@socket) ? fill? : (@socket.wait_readable(seconds) or raise(IO::TimeoutError, "nothing has come"))
      end

      # Returns whether these bytes come next. It waits for as many bytes as are needed to know that.
      #
      # @param bytes [String]
      # @return [Boolean]
      def next?(bytes)
        until (here = @input.byteslice(@position, bytes.bytesize)).bytesize == bytes.bytesize
          return false unless bytes.start_with?(here) && fill?
        end
        here == bytes
      end

      # Reads a line, with its end unless chomp is true.
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

      # @return [String] the bytes that have come, at least one
      # @raise [EOFError]
      def readpartial(limit, buffer = nil)
        raise EOFError, "end of file reached" if @position == @input.bytesize && !fill?

        give(take(limit), buffer)
      end

      # Reads as many bytes as the length says, or all bytes until the end.
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

      # Writes texts. Their bytes are sent when many have been collected, by {#flush}, or at once with {#sync}.
      def write(*parts)
        size = parts.sum do |part|
          part = part.to_s
          append(part)
          part.bytesize
        end
        flush if @sync
        size
      end

      # Appends one String to the bytes that will be sent. They are sent when they are many, or by {#flush}.
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

      # Forgets the bytes that were not sent yet.
      def drop_output = @output.clear

      # @return [Boolean] whether the client could not be written to
      def broken? = @broken

      # @return [Boolean] whether a write was interrupted, so that nobody knows how much of it the client has received
      def torn? = @torn

      def close_read
        @socket.close_read if plain?
      end

      def close_write
        flush
        plain? ? @socket.close_write : @io.__send__(:stop) # sends the end of TLS; Ruby has no public method for it
      rescue Errno::ENOTCONN
        nil
      end

      # Ends the sending direction, and takes the bytes that still come, for a short time. A close while bytes wait to
      # be read would reset the connection, and the client might never see the last answer (RFC 9112, 9.6).
      #
      # @param limits [Limits] linger_size is the number of bytes that it takes at most, and stall the seconds that the
      #   last write may wait
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

      # Waits until an upgraded connection is closed. The application may have handed it to a task or to a thread.
      def await_close
        @closing = Thread::Queue.new
        @closing.pop unless closed?
      end

      # Returns whether the client takes its answer too slowly. The server calls this from time to time.
      #
      # @param now [Float] by Clock
      # @param limits [Limits] rate is the bytes a second that the client has to take, and stall the seconds over which
      #   they are counted
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

      # Closes the connection so that the client does not take the bytes that have come for the whole answer. TCP resets
      # the connection, and TLS sends no message of its end. A UNIX socket has no reset.
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

      # Reads within the limit that {#within} has set. A record of TLS may come in pieces, and each of them would have
      # the whole patience otherwise.
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

      # Sends the collected bytes. After an interrupted write nothing can be sent, because the client would take it for
      # a part of that write.
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
