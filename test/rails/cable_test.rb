# frozen_string_literal: true

# bin/test: takes 25 s, 1 core

require_relative "../test_helper"
require "support/clients"
require "support/serve_program"
require "support/servers/redis"

# ActionCable and ActiveJob under `heddle serve` and `rails server -u heddle` (the application: support/rails/cable).
contract "RailsCable" do
  extend TestSupport::Clients

  client "redis", server: TestSupport::Servers::Redis
  client "websocket-driver", file: "websocket/driver"
  folder = File.expand_path("../support/rails/cable", __dir__)
  heddle = File.expand_path("../../exe/heddle", __dir__)

  heddle_only "it is about tasks"

  def setup
    super
    missing = %w[actioncable activejob protocol-rack protocol-http1].find do |gem|
      Gem::Specification.find_all_by_name(gem).none?
    end
    skip("the gem #{missing} is not installed (bin/test tries to install it)") if missing
    require "support/rails/cable_client"
  end

  def teardown
    @clients&.each(&:close)
  ensure
    @server&.close
    super
  end

  define_method(:start) do |*command, **cable|
    env = { "HEDDLE_BACKEND" => backend, "RAILS_ENV" => "production", "APP_CABLE" => JSON.generate(cable) }
    @clients = []
    @server = TestSupport::ServeProgram.new(*ruby_command.grep_v("-w"), "-W1", *command, chdir: folder, env: env)
  end

  def connect(name)
    @clients << (client = TestSupport::CableClient.new(@server.port, name: name))
    client.receive("type" => "welcome")
    client.subscribe("RoomChannel")
    client
  end

  def assert_cable
    clients = %w[ada bob].map { |name| connect(name) }
    clients.first.perform("say", words: %w[good morning])
    clients.each { |client| client.receive("message" => "ada: GOOD MORNING") }
    answer = Net::HTTP.post(URI("http://127.0.0.1:#{@server.port}/say"), "")

    assert_equal("200", answer.code, answer.body)
    clients.each { |client| client.receive("message" => "said by a job") }
    clients.last.receive("type" => "ping")
    clients.pop.close
    clients.first.perform("say", words: %w[and good night])
    clients.first.receive("message" => "ada: AND GOOD NIGHT")
  end

  define_method(:test_heddle_serve) do
    start(heddle, "serve", "-p", "0", "config.ru", adapter: "async")

    assert_cable
    @server.signal(:TERM)

    assert_predicate(@server.wait, :success?, @server.said.join)
  end

  define_method(:test_heddle_serve_with_redis) do
    start(heddle, "serve", "-p", "0", "config.ru", adapter: "redis", url: "redis://127.0.0.1:#{server.port}/1")

    assert_cable
  end

  define_method(:test_rails_server) do
    code = "APP_PATH = File.expand_path('application'); require 'rails/commands'"
    start("-e", code, "--", "server", "-u", "heddle", "-p", "0", "-b", "127.0.0.1", "-P", "#{tempdir}/pid",
          adapter: "async")

    assert_cable
  end
end
