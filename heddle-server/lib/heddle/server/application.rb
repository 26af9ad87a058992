# frozen_string_literal: true

require "protocol/http/body/buffered"
require "protocol/http/body/file"
require "protocol/rack"
require "stringio"
require "timeout"
require_relative "answer/answer_body"
require_relative "headers"
require_relative "rack_input"
require_relative "refusal"
require_relative "answer/trailers"

module Heddle
  class Server
    # Matches the errors of an application that are answered with 500, for a rescue clause. As with Puma, these are
    # nearly all errors: a missing method, an autoloaded file with a mistake, too deep a recursion, an exit in a
    # library, a failed expectation of a test. The other errors are meant for the task, or for the program.
    module ApplicationError
      OTHERS = [Cancelled, SignalException, ::Timeout::ExitException].freeze
      private_constant :OTHERS

      def self.===(error) = OTHERS.none? { |kind| error.is_a?(kind) }
    end
    private_constant :ApplicationError

    # Calls the Rack application for protocol-rack.
    #
    # @private
    class Application < ::Protocol::Rack::Adapter::IMPLEMENTATION
      NOTHING = "".b.freeze
      NO_PARTS = [].freeze
      # Passed to protocol-rack in place of the environment, so that it does not call the callbacks of
      # rack.response_finished. This class calls them itself.
      NO_CALLBACKS = {}.freeze
      # Matches an authority that protocol-rack takes apart wrongly: an IPv6 address, a port without a name, a colon
      # without a port.
      ODD_AUTHORITY = /\A[\[:]|:\z/
      AUTHORITY_PARTS = /\A(\[.*\]|[^:]*):?(\d*)\z/
      # Headers that a proxy adds to a request.
      PROXIES = %w[HTTP_VIA HTTP_FORWARDED HTTP_X_FORWARDED_FOR].freeze
      private_constant :PROXIES, :NOTHING, :NO_PARTS, :NO_CALLBACKS, :ODD_AUTHORITY, :AUTHORITY_PARTS

      # @param app [#call]
      # @yield [error, request] an error that the application has raised, and the request for which it was raised
      def initialize(app, &report)
        super(app)
        @report = report
      end

      # Calls the application and makes the response. The method of protocol-rack rescues only a StandardError.
      def call(request)
        env = make_environment(request)
        status, fields, body = @app.call(env)
        raise ArgumentError, "the status must be an Integer, not #{status.inspect}" unless status.is_a?(Integer)
        raise ArgumentError, "the headers must not be nil" unless fields

        request.trailers = Trailers.of(env["heddle.trailers"])
        headers, meta = wrap_headers(fields)
        request.last! if take_close(headers.fields)
        sent = to_be_sent(status, headers.fields, meta, body)
        sent = sent.to_enum(:each).to_a if stands_for_array?(sent) && !request.head?
        # protocol-rack does not get a request with the method HEAD, because it would close the body before the answer
        # is sent.
        response = ::Protocol::Rack::Response.wrap(NO_CALLBACKS, status, headers, meta, sent,
                                                   request.head? ? nil : request)
        with_end(response, env, fields, (body unless sent.equal?(body)))
      rescue ApplicationError => e
        handle_error(env, status, fields, body, e)
      end

      # @return [Array(ResponseHeaders, Hash{String => Object})] the headers, and the values that are meant for the
      #   server
      def wrap_headers(fields)
        headers, meta = super
        fields = headers.fields
        meta["rack.protocol"] ||= take_upgrade(fields) if meta["rack.hijack"]
        fields.each { |field| field[1] = Stream.bytes_of(field[1]) if field[1].is_a?(String) }
        [ResponseHeaders.new(fields), meta]
      rescue ArgumentError # the name has no form in small letters
        raise ArgumentError, "a header has a name that is no text"
      end

      # Makes the environment of a request. Every request has an input, as with other servers, although Rack allows a
      # request without one. A body whose length is not known is announced as chunked, with HTTP/2, too. Otherwise Rails
      # would read nothing of it.
      def make_environment(request)
        environment = super
        body = request.body
        add_calls(environment, request)
        environment["rack.input"] = body ? RackInput.new(body) : StringIO.new(NOTHING)
        environment["HTTP_TRANSFER_ENCODING"] = "chunked" if body && body.length.nil?
        name_server(environment, request.authority) if request.authority.match?(ODD_AUTHORITY)
        environment
      end

      # Makes the response for an error. The client does not see which error it was.
      def handle_error(env, status, headers, body, error)
        finish(env, status, headers, body, error)
        status = error.is_a?(Refusal) ? error.status : 500
        @report.call(error, env&.[]("protocol.http.request")) if status == 500
        text = ::Protocol::HTTP::Status.description(status)
        ::Protocol::HTTP::Response[status, { "content-type" => "text/plain" }, [text]]
      end

      private

      # Adds the procs by which the application may ask something of the server. Libraries of Rack 2 look for
      # rack.hijack_io. Some proxies of HTTP/1 take an early hint for the answer, so none is sent through a proxy
      # (RFC 8297, 3).
      def add_calls(environment, request)
        environment["heddle.disconnected"] = request.disconnected
        proxied = !request.version.start_with?("HTTP/2") && PROXIES.any? { |name| environment.key?(name) }
        environment["rack.early_hints"] = ->(headers) { request.send_early_hints(headers) unless proxied }
        return unless request.hijack?

        environment["rack.hijack"] = -> { environment["rack.hijack_io"] = request.hijack!.io }
      end

      # Returns the application's body, or the body that takes its place.
      def to_be_sent(status, fields, meta, body)
        if ::Protocol::Rack::Body.no_content?(status)
          meta.clear
          NO_PARTS
        elsif meta["rack.hijack"]
          HijackBody.new(meta.delete("rack.hijack"), fields)
        else
          status == 200 && body.respond_to?(:to_path) ? file_of(body) : body
        end
      end

      # Returns whether a body stands for an Array, but must be read by its each. Middleware wraps the Array of an
      # application in an object whose each may do more, as Rack::Events does. protocol-rack would call to_ary.
      def stands_for_array?(body)
        defined?(::Rack::BodyProxy) && body.is_a?(::Rack::BodyProxy) && body.respond_to?(:to_ary)
      end

      def file_of(body)
        ::Protocol::HTTP::Body::File.open(body.to_path)
      rescue SystemCallError
        body.to_enum(:each) # the file has gone
      end

      # @param unsent [#close, nil] the application's body, if another one takes its place
      def with_end(response, env, fields, unsent)
        return response unless unsent || env["rack.response_finished"]&.any?

        response.body = CompletedBody.new(response.body || ::Protocol::HTTP::Body::Buffered.new(NO_PARTS)) do |error|
          finish(env, response.status, fields, unsent, error)
        end
        response
      end

      # Closes the body and calls the callbacks after the answer. The error of one callback does not keep the others
      # from being called.
      def finish(env, status, headers, body, error)
        request = env&.[]("protocol.http.request")
        tell(request, body.method(:close)) if body.respond_to?(:close)
        env&.[]("rack.response_finished")&.reverse_each do |callback|
          tell(request, callback, env, status, headers, error)
        end
      end

      # Sets the name and the port of the server. protocol-rack takes the first colon for the beginning of the port.
      def name_server(environment, authority)
        name, port = authority.match(AUTHORITY_PARTS).captures
        environment["SERVER_NAME"] = name.empty? ? "localhost" : name
        port.empty? ? environment.delete("SERVER_PORT") : environment["SERVER_PORT"] = port
      end

      def tell(request, callback, *arguments)
        callback.call(*arguments)
      rescue ApplicationError => e
        @report.call(e, request)
      end

      # Takes "connection: close" out of the headers. The server sends it itself: protocol-rack would drop it, and warn.
      #
      # @return [Boolean] whether the connection must end with the answer
      def take_close(fields) = !fields.reject! { |name, value| name == "connection" && value.casecmp?("close") }.nil?

      # Takes the headers of an upgrade from an application that hijacks its answer. The server sends them itself.
      def take_upgrade(fields)
        name, protocol = fields.find { |field| field[0] == "upgrade" }
        fields.reject! { |field| %w[upgrade connection].include?(field[0]) } if name
        protocol
      end
    end
  end
end
