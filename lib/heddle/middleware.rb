# frozen_string_literal: true

require_relative "../heddle"
require_relative "middleware/body"

module Heddle
  # A Rack middleware that gives each request a Heddle.run, in any server that runs a request in a thread: Puma,
  # Unicorn, Passenger. So the application can spawn tasks wherever it likes. It has to be loaded:
  # `require "heddle/middleware"`.
  #
  # Use it first, outside of all others: what they keep for the request (Warden's `catch`, a transaction) then belongs
  # to the run. The tasks of a request end before its answer is sent. A body that the server asks for its parts, and one
  # that writes to the connection, has a run of its own. A thread that has a scheduler already is left as it is.
  #
  # @example config.ru
  #   require "heddle/middleware"
  #   use Heddle::Middleware
  #   run MyApplication
  class Middleware
    # @param app [#call] a Rack application
    def initialize(app)
      @app = app
    end

    # @param env [Hash] of Rack
    # @return [Array] the answer: status, headers, body
    # @raise [Exception] what the application raises, or what the first task has raised that failed after it
    def call(env)
      return @app.call(env) if Fiber.scheduler

      status, headers, body = answer(env)
      hijack = headers["rack.hijack"]
      headers = headers.merge("rack.hijack" => ->(stream) { Heddle.run { hijack.call(stream) } }) if hijack
      [status, headers, Body.of(body)]
    end

    private

    def answer(env)
      answer = failure = nil
      Heddle.run do
        answer = @app.call(env)
        failure = Scope.current.failure
      end
      answer
    rescue StandardError => e
      # The application has rescued the failure of its task, and made an answer of it.
      e.equal?(failure) ? answer : raise
    end
  end
end
