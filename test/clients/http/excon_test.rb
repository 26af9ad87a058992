# frozen_string_literal: true

# bin/test: takes 13 s, 0.4 of a core

require_relative "../../test_helper"
require "support/clients/http_matrix"
require "support/http_server"
require "support/io/shared_io"

# excon, whose connections keep their sockets by thread.
contract "Excon" do
  extend TestSupport::Clients
  include TestSupport::SharedIO

  client "excon"

  heddle_only "it is about tasks"

  def setup
    super
    @server = keep(TestSupport::HttpServer.new)
  end

  def connect(**) = Excon.new("http://#{host}:#{server.port}", **)

  # The server answers with the size of what it was sent.
  def ask(connection, number)
    connection.post(path: "/sleep/0.1", body: "x" * number).body[/\d+\z/].to_i
  end

  # Tasks that connect at the same time replace each other's socket, so the others begin when the first one has it. A
  # task that fails closes it, and the next tasks connect at the same time: two are enough.
  [true, false].each do |persistent|
    define_method("test_tasks_share_a_#{"persistent_" if persistent}connection") do
      shared = connect(persistent: persistent)
      share = lambda do |number|
        sleep(0.001) until number.zero? || shared.send(:sockets).any?
        ask(shared, number)
      end

      assert_warns("excon: an Excon connection must not be shared: ", &share)
      shared.reset

      assert_raises_where_shared(Excon::Error::Socket, count: 2, &share)
    ensure
      shared.reset
      close_forgotten(Socket)
    end
  end

  def test_a_connection_for_each_task
    assert_right_and_silent do |number|
      connection = connect(persistent: true)
      ask(connection, number).tap { connection.reset }
    end
    assert_right_and_silent { |number| ask(connect, number) }
  end

  def test_a_pool
    pool = Heddle::Pool.new(size: 5, close: :reset.to_proc) { connect(persistent: true) }
    assert_right_and_silent { |number| pool.with { |connection| ask(connection, number) } }
    pool.close
  end
end

http_contracts "Excon", "excon" do
  def name_in_table = "excon"
  def timeout_errors = [Excon::Error::Timeout]
  def close_client(client) = client.reset
  def ask(client, number, seconds) = Integer(client.get(path: path(number, seconds)).body)

  def open_client(timeout:)
    Excon.new(base, persistent: true, read_timeout: timeout, ssl_cert_store: cert_store).tap { |one| ask(one, 0, 0) }
  end
end
