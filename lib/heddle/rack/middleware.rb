# frozen_string_literal: true

module Heddle
  # Support for Rack servers, loaded by `require "heddle/rack"`. guides/servers.md shows how to use it.
  module Rack
    # Gives each request a Heddle.run, under any Rack server: the application may call Heddle.spawn anywhere. All tasks
    # of a request have ended before its answer is sent. A body that is made while it is sent, and a `rack.hijack` of
    # the answer, get a run of their own.
    #
    # Under `heddle serve`, and wherever a Heddle.run is already open, it only calls the application.
    #
    # @example config.ru
    #   require "heddle/rack"
    #
    #   use Heddle::Rack::Middleware
    #   run MyApplication
    class Middleware
      HIJACK = "rack.hijack"
      private_constant :HIJACK

      # @param app [#call] a Rack application
      # @raise [ArgumentError]
      def initialize(app)
        Check.responds("app", app, :call)
        @app = app
      end

      # @param env [Hash] of Rack
      # @return [Array] of Rack
      # @raise [Heddle::Error] if a scheduler of another kind is set on this thread, as Falcon does
      # @raise [Exception] the error of the application, or of a task that failed when the application had answered
      def call(env)
        return @app.call(env) if Scope.here

        with_runs(answer(env))
      end

      private

      def answer(env)
        answer = failure = nil
        Heddle.run do
          answer = @app.call(env)
          failure = Scope.current.failure_told
        end
        answer
      rescue StandardError => e
        # The application has rescued the failure of its task, and has turned it into an answer.
        e.equal?(failure) ? answer : raise
      end

      # @return [Array] the answer, with runs around the parts that the server calls later
      def with_runs(answer)
        _, headers, body = answer
        return answer if body.is_a?(Array) && !headers[HIJACK]

        status, = answer
        [status, hijacked_in_run(headers), Body.in_run(body)]
      end

      def hijacked_in_run(headers)
        hijack = headers[HIJACK] or return headers

        headers.merge(HIJACK => ->(stream) { Heddle.run { hijack.call(stream) } })
      end
    end
  end
end
