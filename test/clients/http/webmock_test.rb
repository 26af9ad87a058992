# frozen_string_literal: true

# bin/test: takes 3 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/http_server"
require "net/http"

# webmock, which answers in the place of a server.
contract "Webmock" do
  extend TestSupport::Clients

  client "webmock"

  def setup
    super
    WebMock.enable!
  end

  def teardown
    WebMock.reset!
    WebMock.disable!
    super
  end

  def get(number) = Net::HTTP.get(URI("http://stubbed.test/#{number}"))

  # The stub waits in the task that asks, until all have come.
  def test_fifty_tasks_at_the_same_time
    came = 0
    WebMock.stub_request(:get, %r{\Ahttp://stubbed.test/\d+\z}).to_return do |request|
      came += 1
      sleep(0.001) until came == 50
      { body: request.uri.path }
    end

    reactor do
      values, = all_at_once(50) { |number| get(number) }

      assert_equal(Array.new(50) { |number| "/#{number}" }, values)
    end

    assert_operator(WebMock::RequestRegistry.instance.requested_signatures.hash.values.sum, :>=, 50)
  end

  def test_a_timeout_that_is_stubbed
    WebMock.stub_request(:get, "http://stubbed.test/1").to_timeout

    reactor { assert_raises(Net::OpenTimeout) { get(1) } }
  end

  # A request without a stub goes to the server.
  def test_real_requests_beside_it
    WebMock.allow_net_connect!
    WebMock.stub_request(:get, "http://stubbed.test/1").to_return(body: "stub")
    server = keep(TestSupport::HttpServer.new)
    reactor do
      values, = all_at_once(20) do |number|
        number.even? ? get(1) : Net::HTTP.get(URI("http://#{host}:#{server.port}/sleep/0.05"))
      end

      assert_equal(["stub", "GET 1 0"] * 10, values)
    end
  ensure
    WebMock.disable_net_connect!
  end
end
