# frozen_string_literal: true

require "protocol/rack"
require_relative "headers"
require_relative "refusal"

module Heddle
  class Server
    # The Rack application, as protocol-rack calls it.
    #
    # @private
    class Application < ::Protocol::Rack::Adapter::IMPLEMENTATION
      # @param app [#call]
      # @yield [error] that the application has raised
      def initialize(app, &report)
        super(app)
        @report = report
      end

      # @return [Array(ResponseHeaders, Hash{String => Object})] headers, and what is for the server
      def wrap_headers(fields)
        headers, meta = super
        [ResponseHeaders.new(headers.fields), meta]
      end

      # It names no error to the client.
      def handle_error(env, status, headers, body, error)
        body.close if body.respond_to?(:close)
        env&.[]("rack.response_finished")&.reverse_each { |callback| callback.call(env, status, headers, error) }
        status = error.is_a?(Refusal) ? error.status : 500
        @report.call(error) if status == 500
        text = ::Protocol::HTTP::Status.description(status)
        ::Protocol::HTTP::Response[status, { "content-type" => "text/plain" }, [text]]
      end
    end
  end
end
