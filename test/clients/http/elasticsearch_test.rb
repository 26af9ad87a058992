# frozen_string_literal: true

# bin/test: takes 8 s, 0.5 of a core

require_relative "../../test_helper"
require "json"
require "support/clients/client_matrix"
require "support/http_server"

# elasticsearch, with Faraday and Net::HTTP, and a server that gives each document late.
contract "Elasticsearch" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "elasticsearch"

  # GET /late-0.2/_doc/7
  late = Class.new(TestSupport::HttpServer) do
    def respond(socket, _)
      request = socket.gets or return
      nil until ["\r\n", nil].include?(socket.gets)
      wait_for_the_end_of_a_pause
      seconds, number = request.match(%r{/late-([\d.]+)/_doc/(\d+)})&.captures
      return unless number # the client asks whether the server lives

      sleep(Float(seconds))
      text = JSON.generate(_id: number, found: true)
      socket.write("HTTP/1.1 200 OK\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: application/json\r\n" \
                   "Content-Length: #{text.bytesize}\r\n\r\n#{text}")
    end
  end

  define_method(:setup) do
    super()
    @server = keep(late.new)
  end

  def title = "elasticsearch"
  def timeout_errors = [Elastic::Transport::Transport::Error]
  def connects_for_each_question? = true
  def close_client(client) = client.transport.connections.each { |one| one.connection.close }
  def ask(client, number, seconds) = Integer(client.get(index: "late-#{seconds}", id: number.to_s)["_id"])

  def open_client(timeout:)
    client = Elasticsearch::Client.new(url: "http://#{host}:#{server.port}", request_timeout: timeout)
    client.tap { ask(client, 0, 0) }
  end

  def test_tasks_share_a_client
    reactor do
      client = open_client(timeout: 20)
      values, = all_at_once(50) { |number| ask(client, number, 0.05) }

      assert_equal([*0...50], values)
    end
  end
end
