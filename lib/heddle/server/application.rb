# frozen_string_literal: true

require "protocol/rack"
require "stringio"
require_relative "headers"
require_relative "refusal"

module Heddle
  class Server
    # What an application may raise, and is answered with 500: also a method that is missing here, an autoloaded file
    # with a mistake, too deep a recursion.
    APPLICATION_ERRORS = [StandardError, ScriptError, SystemStackError].freeze
    private_constant :APPLICATION_ERRORS

    # The Rack application, as protocol-rack calls it.
    #
    # @private
    class Application < ::Protocol::Rack::Adapter::IMPLEMENTATION
      NOTHING = "".b.freeze
      # An IPv6 address, a port without a name, no port behind the colon.
      ODD_AUTHORITY = /\A[\[:]|:\z/
      AUTHORITY_PARTS = /\A(\[.*\]|[^:]*):?(\d*)\z/
      private_constant :NOTHING, :ODD_AUTHORITY, :AUTHORITY_PARTS

      # @param app [#call]
      # @yield [error] that the application has raised
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

        headers, meta = wrap_headers(fields)
        env["rack.response_finished"] << ->(*) { body.close } if meta["rack.hijack"] && body.respond_to?(:close)
        body = read_by_each(body, headers) if body.respond_to?(:to_path) && !File.exist?(body.to_path)
        ::Protocol::Rack::Response.wrap(env, status, headers, meta, body, request)
      rescue *APPLICATION_ERRORS => e
        handle_error(env, status, fields, body, e)
      end

      # @return [Array(ResponseHeaders, Hash{String => Object})] headers, and what is for the server
      def wrap_headers(fields)
        headers, meta = super
        fields = headers.fields
        meta["rack.protocol"] ||= take_upgrade(fields) if meta["rack.hijack"]
        fields.each { |field| field[1] = Stream.bytes_of(field[1]) if field[1].is_a?(String) }
        [ResponseHeaders.new(fields), meta]
      end

      # Every request has an input, as other servers' do; Rack allows for none.
      def make_environment(request)
        environment = super
        environment["rack.input"] ||= StringIO.new(NOTHING)
        name_server(environment, request.authority) if request.authority.match?(ODD_AUTHORITY)
        environment
      end

      # It names no error to the client.
      def handle_error(env, status, headers, body, error)
        body.close if body.respond_to?(:close)
        env&.[]("rack.response_finished")&.reverse_each { |callback| tell(callback, env, status, headers, error) }
        status = error.is_a?(Refusal) ? error.status : 500
        @report.call(error) if status == 500
        text = ::Protocol::HTTP::Status.description(status)
        ::Protocol::HTTP::Response[status, { "content-type" => "text/plain" }, [text]]
      end

      private

      # Its file has gone.
      def read_by_each(body, headers)
        length = headers.delete("content-length")
        ::Protocol::Rack::Body::Enumerable.wrap(body, length && Integer(length))
      end

      # (protocol-rack takes the first colon for that of the port.)
      def name_server(environment, authority)
        name, port = authority.match(AUTHORITY_PARTS).captures
        environment["SERVER_NAME"] = name.empty? ? "localhost" : name
        port.empty? ? environment.delete("SERVER_PORT") : environment["SERVER_PORT"] = port
      end

      # An error of one callback keeps no other from being called.
      def tell(callback, *arguments)
        callback.call(*arguments)
      rescue *APPLICATION_ERRORS => e
        @report.call(e)
      end

      # What an application that hijacks its answer says of the upgrade, the server says.
      def take_upgrade(fields)
        name, protocol = fields.find { |field| field[0] == "upgrade" }
        fields.reject! { |field| %w[upgrade connection].include?(field[0]) } if name
        protocol
      end
    end
  end
end
