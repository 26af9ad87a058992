# frozen_string_literal: true

module Bench
  # What Heddle::Rack::Middleware adds to a request in a thread of a web server: a Heddle.run. The application does
  # nothing, so the server and the application come on top. Each request needs an environment of its own, in all rows.
  module RackMiddleware
    ANSWER = [200, { "content-type" => "text/plain" }, ["Hello, world!"]].freeze

    class << self
      # Answers this number of requests, one after the other, in one thread.
      # @return [Integer] how many answers were right
      def answer(app, number)
        right = 0
        number.times { right += 1 if app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" }).equal?(ANSWER) }
        right
      end

      # A row; the block is the application.
      def row(name, title, within:, &app)
        made = nil
        Bench.row("rack_#{name}", title, unit: "request", operations: 20_000, expect: ->(n) { n }) do |_, n|
          require "heddle/rack"
          made ||= within ? Heddle::Rack::Middleware.new(app) : app
          answer(made, n)
        end
      end
    end

    Bench.group("rack", "A request through Heddle::Rack::Middleware, in one thread",
                peers: %w[heddle-uring heddle-epoll], figures: %i[cpu wall]) do
      row("bare", "the application alone", within: false) { ANSWER }
      row("middleware", "with the middleware", within: true) { ANSWER }
      row("middleware_task", "with the middleware, and one task whose value it waits for", within: true) do
        Heddle.spawn { ANSWER }.value
      end
    end
  end
end
