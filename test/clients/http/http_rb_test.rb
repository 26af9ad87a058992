# frozen_string_literal: true

# bin/test: takes 8 s, 0.4 of a core

require "stringio"

require_relative "../../test_helper"
require "support/certificate"
require "support/clients/http_matrix"
require "support/io/shared_io"

# HTTP.rb, the gem "http".
http_contracts "HttpRb", "http" do
  include TestSupport::SharedIO

  def name_in_table = "HTTP.rb"
  def timeout_errors = [HTTP::TimeoutError]
  def close_client(client) = client.close
  def ask(client, number, seconds) = Integer(client.get(path(number, seconds)).to_s)
  def open_client(timeout:) = persistent(timeout: timeout).tap { |one| ask(one, 0, 0) }

  def persistent(timeout: 10)
    context = OpenSSL::SSL::SSLContext.new.tap { |one| one.set_params(cert_store: cert_store) }
    HTTP::Session.new(ssl_context: context).persistent(base).timeout(timeout)
  end

  def test_tasks_share_a_persistent_client
    skip("it raises at once: its buffer is locked") unless tls?
    heddle_only("it is about tasks")
    # Whether tasks that connect at once read from one connection is a matter of microseconds: ten clients in turn.
    shared = Array.new(10) { persistent }
    assert_warns("http: a persistent client of HTTP.rb must not be shared", count: 40) do |number|
      sleep(0.2 * (number / 4))
      ask(shared[number / 4], number, 0.1)
    end
    shared.each(&:close)
  end

  def test_a_pool_of_persistent_clients
    heddle_only("it is about tasks")
    pool = Heddle::Pool.new(size: 5, close: :close.to_proc) { persistent }
    assert_right_and_silent { |number| pool.with { |one| ask(one, number, 0.01) } }
    pool.close
  end

  # A client that is not persistent has one connection as well.
  def test_a_pool_of_clients
    skip("the same") if tls?
    heddle_only("it is about tasks")
    shared = HTTP::Client.new

    assert_operator(tally(20) { |number| Integer(shared.get(url(number, 0.01)).to_s) }[:right].to_i, :<, 20)
    pool = Heddle::Pool.new(size: 5, close: :close.to_proc) { HTTP::Client.new }
    assert_right_and_silent { |number| pool.with { |one| Integer(one.get(url(number, 0.01)).to_s) } }
    pool.close
  end

  def test_a_client_that_is_not_persistent
    skip("the same") if tls?
    heddle_only("it is about tasks")
    shared = HTTP.timeout(10)
    assert_right_and_silent { |number| Integer(shared.get(url(number, 0.01)).to_s) }
  end

  def test_upload_and_parts
    skip("the same") if tls?
    reactor do
      body = StringIO.new("x" * 1_000_000)

      assert_equal(1_000_000, HTTP.post("#{base}/echo", body: body).to_s.size)
      parts = []
      assert_others_run { HTTP.get("#{base}/parts?seconds=0.1").body.each { |part| parts << part } }

      assert_equal("one\ntwo\nthree\n", parts.join)
      assert_operator(parts.size, :>=, 3)
    end
  end
end
