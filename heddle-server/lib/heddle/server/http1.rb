# frozen_string_literal: true

require "protocol/http1"
require_relative "http1/chunked_body"
require_relative "headers"
require_relative "http1/answer"
require_relative "http1/lines"
require_relative "request"
require_relative "request_body"
require_relative "refusal"
require_relative "targets"
require_relative "unsliced"

module Heddle
  class Server
    # Serves the requests of an HTTP/1 connection, one after another. protocol-http1 reads the requests. This class
    # decides what protocol-http1 leaves open, and refuses what a server on the open internet has to refuse (RFC 9112).
    #
    # @private
    class HTTP1 < ::Protocol::HTTP1::Connection
      include HTTP1Lines

      # The tasks of an application may send something while the task of the connection does. No time slice ends in the
      # midst of a head.
      Unsliced.libraries_of("Protocol::HTTP::Headers", "Protocol::HTTP1::Connection")

      # Seconds without a request after which the connection gives back its task.
      PARK_AFTER = 0.5
      ABSOLUTE_TARGET = %r{\A(https?)://([^/?#]+)([/?].*)?\z}i

      # Raised when the connection ends in the midst of an answer.
      class Aborted < StandardError; end

      private_constant :Aborted
      private_constant :PARK_AFTER, :ABSOLUTE_TARGET

      # @return [Stream, nil] nil once the application has taken it over
      attr_reader :stream

      # @param connection [Connection] the connection whose requests it serves
      # @param stream [Stream]
      def initialize(connection, stream)
        super(stream)
        @connection = connection
        @server = connection.server
        @limits = @server.limits
        begin_lines
        @fresh = @server.http2? && connection.scheme == "http"
        @refused = false
      end

      # Serves requests as long as they come.
      #
      # @return [Symbol] :idle when no request has come for a while, :hijacked when the connection belongs to the
      #   application now, :http2 when the client begins with HTTP/2, or :closed
      def run
        while await_request
          @stream.patience = @limits.stall
          @stream.within(@limits.head_time)
          return :http2 if @fresh && speaks_http2?
          return :closed unless (request = next_request)

          respond(request)
          return :hijacked if hijacked?
          next if persistent

          linger
          return :closed
        end
        :idle
      rescue Refusal => e
        refuse(e)
        :closed
      rescue Aborted, ::Protocol::HTTP::RemoteError, IOError, SystemCallError
        :closed
      end

      # Sends an interim response. Nothing is sent after the head of the answer, and nothing to a client of HTTP/1.0
      # (RFC 9110, 15.2).
      #
      # @param status [Integer]
      # @param headers [Hash{String => String}]
      # @return [void]
      def write_interim_response(status, headers = {})
        super(@version, status, headers) unless @answer.answered? || @version == "HTTP/1.0"
      rescue StandardError
        @stream&.drop_output # the lines before a header that cannot be sent
        raise
      end

      # -- for the body of a request ---------------------------------------------------------------------------------

      def read_chunked_body(headers) = ChunkedBody.new(self, headers)

      # -- for the answer --------------------------------------------------------------------------------------------

      # Reads the rest of a short body that the application has not read. If the rest is long, the connection ends.
      #
      # @param request [Request]
      def finish(request)
        @persistent = false unless request.body.nil? || request.body.finish
      end

      # Sends a refusal, at most once: the connection ends with it.
      #
      # @param refusal [Refusal]
      def send_refusal(refusal)
        return if hijacked? || @refused

        @refused = true
        @persistent = false
        @stream.patience = @limits.stall
        @stream.write(refusal.answer(head: @head))
        @stream.flush
      end

      # -- for the connection ----------------------------------------------------------------------------------------

      # Does nothing: an answer that is sent while the server stops says that the connection ends, and the server closes
      # idle connections.
      def drain = nil

      # @return [Boolean] whether the client has left by now
      def left? = @connection.left?

      # Checks whether the client has left, if the application wants to know. An application that reads from an upgraded
      # connection has already seen the end.
      def look_after
        watched = @request&.watched
        watched.left! if watched&.awaited? && !@stream&.read_to_end? && left?
      end

      # @return [String, nil] for Heddle.dump: nil between two requests
      def description
        request = @request
        "#{request.method} #{request.path.dump[1..-2]} of #{@connection.client}" if request
      end

      # Cuts off the connection if its end would also be the end of an incomplete answer. So the client sees that a part
      # of the answer is missing.
      def farewell = @answer&.unfinished? && @stream&.cut_off

      private

      # Returns whether a new client begins with HTTP/2, because it knows that this server speaks it (RFC 9113, 3.3).
      def speaks_http2?
        @fresh = false
        @stream.next?(::Protocol::HTTP2::CONNECTION_PREFACE)
      rescue IO::TimeoutError
        raise Refusal, 408
      end

      # @return [Boolean] false: nothing has come for a while
      def await_request
        return true if @stream.buffered?

        @stream.await(PARK_AFTER)
        true
      rescue IO::TimeoutError
        false
      end

      # -- what comes in ---------------------------------------------------------------------------------------------

      # @return [Request, nil] nil at the end of the connection
      def next_request
        @version = @head = nil
        begin_lines
        read_with_bounds { (parts = read_request) && request_of(*parts) }
      rescue ::Protocol::HTTP1::LineLengthError
        raise Refusal, @version ? 431 : 414
      rescue ::Protocol::HTTP1::ProtocolError, ::Protocol::HTTP::BadRequest
        raise Refusal, 400
      rescue IO::TimeoutError
        raise Refusal, 408
      ensure
        @stream&.patience = @limits.stall
      end

      # Reads the first line of a request. One empty line before it is ignored (RFC 9112, 2.2).
      def read_request_line
        return unless (line = read_line?)

        line = read_line? if line.empty?
        match = line&.match(::Protocol::HTTP1::REQUEST_LINE) or raise(Refusal, 400)
        method = match[1]
        target = match[2]
        @version = match[3]
        @head = method == "HEAD"
        raise Refusal, 505 unless @version.start_with?("HTTP/1.")
        raise Refusal, 400 unless Targets.target?(target)

        @version = "HTTP/1.1" unless @version == "HTTP/1.0"
        [method, target, @version]
      end

      # Reads the header fields. A field whose name has an underscore is dropped: in the environment of Rack X_Real_IP
      # would look like X-Real-IP, which is another field. Spaces behind a value are not a part of it (RFC 9112, 5.1).
      def read_headers
        fields = super.fields
        fields.reject! { |name,| name.include?("_") }
        fields.each do |field|
          raise Refusal, 400 if Fields.control?(field[1])

          field[1] = Fields.trimmed(field[1])
        end
        RequestHeaders.new(fields)
      end

      # Makes the body of a request. A request that gives its end in two ways, or in a way that not all programs
      # understand, is refused, and nothing is guessed: request smuggling uses such requests (RFC 9112, 11.2).
      def read_request_body(method, headers)
        raise Refusal, 501 if method == "CONNECT"
        raise Refusal, 431 if headers.fields.size > @limits.headers

        encoding = headers["transfer-encoding"]
        check_framing(encoding, headers) if encoding
        return if encoding.nil? && headers["content-length"].nil? # also with an Upgrade: RFC 9112, 6.3

        length = read_body(headers)
        return unless length

        raise Refusal, 413 if length.length && length.length > @limits.body_size

        RequestBody.new(length, self, @limits, continue: @version == "HTTP/1.1" && headers["expect"])
      end

      # Checks the transfer-encoding. Some programs ignore an encoding without a name, as in "chunked,", and others take
      # it for an encoding that they do not know.
      def check_framing(encoding, headers)
        raise Refusal, 400 if headers["content-length"] || @version == "HTTP/1.0" || encoding.last != "chunked"
        raise Refusal, 501 if encoding.size > 1
        raise Refusal, 400 if headers.fields.any? { |name, value| name.casecmp?("transfer-encoding") && value[","] }
      end

      def request_of(authority, method, target, version, headers, body)
        unless target.start_with?("/") || (target == "*" && method == "OPTIONS")
          match = target.match(ABSOLUTE_TARGET) or raise(Refusal, 400)
          authority = match[2]
          target = match[3] ? match[3].sub(/\A\?/, "/?") : "/"
        end
        check_authority(authority)
        authority = "localhost" if authority.nil? || authority.empty? # Rack wants a name
        protocol = headers.delete("upgrade")
        protocol = nil unless upgrade?(version, headers, body)
        Request.new(@connection, self, authority, method, target, version, headers, body, protocol)
      end

      # Returns whether the request asks for an upgrade (RFC 9110, 7.8). A request with a body does not, because the
      # upgrade would stand in the midst of the body.
      def upgrade?(version, headers, body)
        body.nil? && version == "HTTP/1.1" && headers["connection"]&.any? { |option| option.casecmp?("upgrade") }
      end

      def check_authority(authority)
        return if authority.nil? ? @version == "HTTP/1.0" : Targets.authority?(authority)

        raise Refusal, 400
      end

      # -- what goes out ---------------------------------------------------------------------------------------------

      # Writes a part of the answer. If the client has gone, the write raises an error, and {Stream#broken?} is true.
      def write_stream(bytes) = @stream.append(bytes)
      def flush_stream = @stream.flush

      def write_header(name, value)
        name, value = Fields.checked(name, value)
        write_stream("#{name}: #{value}\r\n")
      end

      def respond(request)
        @request = request
        @answer = Answer.new(self, @server, request)
        @answer.serve
      ensure
        @request = nil
      end

      # @param refusal [Refusal]
      def refuse(refusal)
        return if hijacked?

        send_refusal(refusal)
        linger
      rescue SystemCallError, IOError
        nil
      end

      def linger = @stream.linger(@limits)
    end
  end
end
