# frozen_string_literal: true

# bin/test: takes 10 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/mongo_server"

# mongo. Tasks share a client, which has a pool of connections, and threads that look after its servers.
contract "Mongo" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "mongo"

  def setup
    super
    Mongo::Logger.logger.level = Logger::FATAL
    @server = keep(TestSupport::MongoServer.new)
    @clients = {}
  end

  def teardown
    @clients&.each_value(&:close)
    super
  end

  def title = "mongo"
  def timeout_errors = [Mongo::Error::SocketTimeoutError]
  def open_client(timeout:) = @clients[timeout] ||= connect(timeout).tap { |one| ask(one, 0, 0) }

  def close_client(client)
    @clients.delete_if { |_, one| one.equal?(client) }
    client.close
  end

  def connect(timeout)
    Mongo::Client.new(["127.0.0.1:#{server.port}"], connect: :direct, database: "here", max_pool_size: 60,
                                                    socket_timeout: timeout, wait_queue_timeout: 60,
                                                    server_selection_timeout: 60)
  end

  def ask(client, number, seconds, **more)
    client.database.command(ping: 1, number:, seconds:, **more).documents.first["number"]
  end

  # More tasks than connections: the others wait in line.
  def test_tasks_wait_for_a_connection
    reactor do
      client = open_client(timeout: 20).with(max_pool_size: 5)
      values, = all_at_once(30) { |number| ask(client, number, 0.02) }

      assert_equal([*0...30], values)
    ensure
      client&.close
    end
  end

  def test_a_large_answer
    reactor do
      assert_equal(7, assert_others_run { ask(open_client(timeout: 60), 7, 0.1, size: 10_000_000) })
    end
  end
end
