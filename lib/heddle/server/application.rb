# frozen_string_literal: true

require "protocol/http/body/buffered"
require "protocol/http/body/file"
require "protocol/rack"
require "stringio"
require "timeout"
require_relative "answer_body"
require_relative "headers"
require_relative "rack_input"
require_relative "refusal"
require_relative "trailers"

module Heddle
  class Server
    # What an application may raise, and is answered with 500, for a rescue clause. As under Puma that is nearly all: a
    # method that is missing here, an autoloaded file with a mistake, too deep a recursion, an exit in a library, a
    # failed expectation of a test. The rest is meant for the task, or for the program.
    module ApplicationError
      OTHERS = [Cancelled, SignalException, ::Timeout::ExitException].freeze
      private_constant :OTHERS

      def self.===(error) = OTHERS.none? { |kind| error.is_a?(kind) }
    end
    private_constant :ApplicationError

    # The Rack application, as protocol-rack calls it.
    #
    # @private
    class Application < ::Protocol::Rack::Adapter::IMPLEMENTATION
      NOTHING = "".b.freeze
      NO_PARTS = [].freeze
      # What protocol-rack is told in place of the environment: those who wait for the end are told here.
      NO_CALLBACKS = {}.freeze
      # An IPv6 address, a port without a name, no port behind the colon.
      ODD_AUTHORITY = /\A[\[:]|:\z/
      AUTHORITY_PARTS = /\A(\[.*\]|[^:]*):?(\d*)\z/
      # Headers by which a proxy says of itself.
      PROXIES = %w[HTTP_VIA HTTP_FORWARDED HTTP_X_FORWARDED_FOR].freeze
      private_constant :PROXIES, :NOTHING, :NO_PARTS, :NO_CALLBACKS, :ODD_AUTHORITY, :AUTHORITY_PARTS

      # @param app [#call]
      # @yield [error, request] that the application has raised, and for which request
      def initialize(app, &report)
        super(app)
        @report = report
      end

      # (That of protocol-rack rescues a StandardError only.)
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
        # (Of HEAD it is told nothing, for it would close the body before the answer is sent.)
        response = ::Protocol::Rack::Response.wrap(NO_CALLBACKS, status, headers, meta, sent,
                                                   request.head? ? nil : request)
        with_end(response, env, fields, (body unless sent.equal?(body)))
      rescue ApplicationError => e
        handle_error(env, status, fields, body, e)
      end

      # @return [Array(ResponseHeaders, Hash{String => Object})] headers, and what is for the server
      def wrap_headers(fields)
        headers, meta = super
        fields = headers.fields
        meta["rack.protocol"] ||= take_upgrade(fields) if meta["rack.hijack"]
        fields.each { |field| field[1] = Stream.bytes_of(field[1]) if field[1].is_a?(String) }
        [ResponseHeaders.new(fields), meta]
      rescue ArgumentError # (it has no small letters)
        raise ArgumentError, "a header has a name that is no text"
      end

      # Every request has an input, as other servers' do; Rack allows for none. One whose length is not known is said to
      # come in chunks, with HTTP/2, too: else Rails would read nothing of it.
      def make_environment(request)
        environment = super
        body = request.body
        add_calls(environment, request)
        environment["rack.input"] = body ? RackInput.new(body) : StringIO.new(NOTHING)
        environment["HTTP_TRANSFER_ENCODING"] = "chunked" if body && body.length.nil?
        name_server(environment, request.authority) if request.authority.match?(ODD_AUTHORITY)
        environment
      end

      # It names no error to the client.
      def handle_error(env, status, headers, body, error)
        finish(env, status, headers, body, error)
        status = error.is_a?(Refusal) ? error.status : 500
        @report.call(error, env&.[]("protocol.http.request")) if status == 500
        text = ::Protocol::HTTP::Status.description(status)
        ::Protocol::HTTP::Response[status, { "content-type" => "text/plain" }, [text]]
      end

      private

      # What the application may ask of the server. (Libraries of Rack 2 look for rack.hijack_io. Some proxies take an
      # early hint for the answer: RFC 8297, 3.)
      def add_calls(environment, request)
        environment["heddle.disconnected"] = request.disconnected
        proxied = !request.version.start_with?("HTTP/2") && PROXIES.any? { |name| environment.key?(name) }
        environment["rack.early_hints"] = ->(headers) { request.send_early_hints(headers) unless proxied }
        return unless request.hijack?

        environment["rack.hijack"] = -> { environment["rack.hijack_io"] = request.hijack!.io }
      end

      # The application's body, or what takes its place.
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

      # Middleware wraps the Array of an application in an object whose each may do more, as that of Rack::Events does.
      # (protocol-rack calls to_ary.)
      def stands_for_array?(body)
        defined?(::Rack::BodyProxy) && body.is_a?(::Rack::BodyProxy) && body.respond_to?(:to_ary)
      end

      def file_of(body)
        ::Protocol::HTTP::Body::File.open(body.to_path)
      rescue SystemCallError
        body.to_enum(:each) # it has gone
      end

      # @param unsent [#close, nil] the application's body, if another one takes its place
      def with_end(response, env, fields, unsent)
        return response unless unsent || env["rack.response_finished"]&.any?

        response.body = CompletedBody.new(response.body || ::Protocol::HTTP::Body::Buffered.new(NO_PARTS)) do |error|
          finish(env, response.status, fields, unsent, error)
        end
        response
      end

      # Behind the answer. No error keeps the others from being told.
      def finish(env, status, headers, body, error)
        request = env&.[]("protocol.http.request")
        tell(request, body.method(:close)) if body.respond_to?(:close)
        env&.[]("rack.response_finished")&.reverse_each do |callback|
          tell(request, callback, env, status, headers, error)
        end
      end

      # (protocol-rack takes the first colon for that of the port.)
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

      # (The server says it: protocol-rack would drop it, and warn.)
      # @return [Boolean] whether the connection is to end with the answer
      def take_close(fields) = !fields.reject! { |name, value| name == "connection" && value.casecmp?("close") }.nil?

      # What an application that hijacks its answer says of the upgrade, the server says.
      def take_upgrade(fields)
        name, protocol = fields.find { |field| field[0] == "upgrade" }
        fields.reject! { |field| %w[upgrade connection].include?(field[0]) } if name
        protocol
      end
    end
  end
end
