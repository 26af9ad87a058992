# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"
require "support/shared_io"

# Sequel on pg. Its pool gives a connection to a thread, or with an extension to a fiber.
contract "Sequel" do
  extend TestSupport::Clients
  include TestSupport::SharedIO

  client "pg"
  client "sequel", server: TestSupport::Servers::Postgres

  def setup
    super
    heddle_only("it is about tasks")
  end

  # The extension cannot be taken back: those that are loaded change Sequel.current.
  def database(fibers:)
    Sequel.extension(:fiber_concurrency) if fibers
    Sequel.define_singleton_method(:current) { fibers ? Fiber.current : Thread.current } unless fibers
    Sequel.connect(adapter: "postgres", host: host, port: server.port, user: "heddle", database: "postgres",
                   max_connections: 10, logger: nil)
  end
end
