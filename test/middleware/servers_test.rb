# frozen_string_literal: true

# bin/test: takes 15 s, 0.3 of a core

require_relative "../test_helper"
require "support/clients"
require "support/puma"
require "support/unicorn"

# Heddle::Middleware in real servers, beside Warden and rack-timeout: support/rack_app.
contract "MiddlewareServers" do
  heddle_only "it is about tasks"

  def setup
    super
    missing = %w[puma rack-timeout unicorn warden].find { |name| Gem::Specification.find_all_by_name(name).none? }
    skip("the gem #{missing} is not installed (bin/test tries to install it)") if missing
    @folder = File.expand_path("../support/rack_app", __dir__)
  end

  def environment(**more) = { "RAILS_ENV" => nil, "RACK_ENV" => "none", "HEDDLE_BACKEND" => backend, **more }

  def with_server(server)
    yield server
  rescue RuntimeError => e
    flunk("#{e.message}\n#{server.said}")
  ensure
    server.stop
  end

  def with_puma(**more, &)
    with_server(TestSupport::Puma.new(ruby_command, @folder, threads: 5, **more), &)
  end

  def answer(server, path)
    found = Net::HTTP.get_response("127.0.0.1", path, server.port)
    [found.code, found.body]
  end

  HERE = ["200", "[7, 10]"].freeze unless defined?(HERE)

  def assert_requests(server)
    found = Array.new(10) { |number| Thread.new { answer(server, number.even? ? "/here" : "/parts") } }.map(&:value)

    assert_equal([HERE, ["200", "10 10 "]] * 5, found, server.said)
    assert_equal(["200", "10 hijacked"], answer(server, "/hijack"))
  end

  # The server goes on afterwards.
  def assert_failures(server)
    assert_equal(["401", "who are you?"], answer(server, "/private"))
    assert_equal(["500", "RuntimeError: as it should"], answer(server, "/fails"))
    code, body = answer(server, "/slow")

    assert_equal("500", code)
    assert_match(/Rack::Timeout::RequestTimeout(Exception|Error).* Request ran for longer/, server.said + body)
    assert_equal(HERE, answer(server, "/here"))
  end

  def test_puma_with_the_middleware
    with_puma(environment: environment) do |puma|
      assert_requests(puma)
      assert_failures(puma)
      assert_equal(%w[200 10], answer(puma, "/stream"))
    end
  end

  def test_puma_with_the_plugin_and_workers
    settings = File.join(tempdir, "puma.rb")
    File.write(settings, "plugin :heddle\nworkers 2\npreload_app!\n")
    with_puma(environment: environment("APP_PLUGIN" => "1"), configuration: settings) do |puma|
      assert_requests(puma)
      assert_failures(puma)
    end
  end

  def test_unicorn
    skip("unicorn itself crashes on Ruby 4.0") if RUBY_VERSION >= "4.0"

    with_server(TestSupport::Unicorn.new(ruby_command, @folder, environment: environment)) do |unicorn|
      assert_requests(unicorn)
      assert_failures(unicorn)
    end
  end
end
