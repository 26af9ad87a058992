# frozen_string_literal: true

require "json"

module TestSupport
  # What the tests of clients have measured. With HEDDLE_CLIENT_FIGURES=FILE they are added to that file, one line of
  # JSON for each; `bin/rake clients` makes the table of guides/clients.md of them.
  class ClientFigures
    # @param title [String] the client, as the table names it
    def initialize(title, backend)
      @title = title
      @backend = backend
    end

    # @param figures [Hash] :took and :hold in seconds, :timeout, :cancel and :close in words
    def note(**figures)
      path = ENV.fetch("HEDDLE_CLIENT_FIGURES", "")
      return if path.empty?

      line = { title: @title, backend: @backend, ruby: RUBY_VERSION, **figures }
      Fiber.blocking { File.write(path, "#{JSON.generate(line)}\n", mode: "a") }
    end
  end
end
