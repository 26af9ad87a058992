# frozen_string_literal: true

require "json"

module TestSupport
  # What the tests of clients have measured. With HEDDLE_CLIENT_FIGURES=FILE they are added to that file, one line of
  # JSON for each; `bin/rake clients` makes the table of guides/clients.md of them.
  module ClientFigures
    # @return [Boolean] whether somebody makes the table now
    def self.wanted? = !ENV.fetch("HEDDLE_CLIENT_FIGURES", "").empty?

    # @param figures [Hash] :title and :version of the client; :took, :hold and :blocked in seconds; :holds, :timeout,
    #   :cancel and :close in words
    def self.note(**figures)
      return unless wanted?

      Fiber.blocking { File.write(ENV.fetch("HEDDLE_CLIENT_FIGURES"), "#{JSON.generate(figures)}\n", mode: "a") }
    end
  end
end
