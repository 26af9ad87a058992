# frozen_string_literal: true

# bin/test: takes 16 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients/http_matrix"
require "support/io/shared_io"

# httpx: HTTP/1.1, and with TLS HTTP/2.
http_contracts "Httpx", "httpx" do
  include TestSupport::SharedIO

  def name_in_table = "httpx"
  def timeout_errors = [HTTPX::RequestTimeoutError]
  def close_client(client) = client.close

  def ask(client, number, seconds)
    response = client.get(url(number, seconds))
    response.raise_for_status

    assert_equal(tls? ? "2.0" : "1.1", response.version)
    Integer(response.body.to_s)
  end

  def session(timeout: 10, from: HTTPX)
    from.with(timeout: { request_timeout: timeout }, ssl: { ca_file: server.certificate_file })
  end

  def persistent(**) = session(from: HTTPX.plugin(:persistent), **).tap { |one| ask(one, 0, 0) }
  def open_client(timeout:) = persistent(timeout: timeout)

  # With HTTP/2 several requests of one task wait for their answers at the same time, on one connection: the first one,
  # which takes longest, is answered last.
  def test_requests_of_one_task
    skip("HTTP/1.1: one after the other") unless tls?
    reactor do
      answered = []
      one = session(timeout: 60, from: HTTPX.plugin(:callbacks))
        .on_response_completed { |request, _| answered << request.uri.to_s }
      urls = Array.new(10) { |number| url(number, number.zero? ? 2 : 0) }
      answers = assert_overlaps(1) { one.get(*urls) }

      assert_equal([*0...10], answers.map { |answer| Integer(answer.body.to_s) })
      assert_equal([10, urls.first], [answered.size, answered.last])
    end
  end

  def test_tasks_share_a_session
    heddle_only("it is about tasks")
    shared = session
    assert_right_and_silent { |number| ask(shared, number, 0.1) }
  end

  # It has one connection. Its requests then take turns, and those of others wait in vain after a cancel.
  def test_tasks_share_a_persistent_session
    heddle_only("it is about tasks")
    shared = Heddle.run { persistent }
    assert_warns("httpx: a session with the plugin :persistent must not be shared") do |number|
      ask(shared, number, 0.3)
    end
  ensure
    shared&.close
  end

  # Its tasks share a connection, too. All are answered, unless one of them is cancelled.
  def test_tasks_share_a_session_with_fiber_concurrency
    heddle_only("it is about tasks")
    shared = session(from: HTTPX.plugin(:fiber_concurrency))
    assert_warns("httpx: a session with the plugin :persistent must not be shared") do |number|
      ask(shared, number, 0.3)
    end
  end

  def test_a_pool_of_persistent_sessions
    heddle_only("it is about tasks")
    pool = Heddle::Pool.new(size: 5, close: :close.to_proc) { persistent }
    assert_right_and_silent { |number| pool.with { |one| ask(one, number, 0.01) } }
    pool.close
  end

  def test_upload
    reactor do
      one = session
      # A larger answer comes in a file, which httpx leaves to the garbage collector.
      sizes, = all_at_once(10) { |number| one.post("#{base}/echo", body: "x" * (number * 10_000)).body.to_s.size }

      assert_equal(Array.new(10) { |number| number * 10_000 }, sizes)
    end
  end

  def test_parts
    reactor do
      one = session(from: HTTPX.plugin(:stream))
      parts = []
      assert_others_run do
        one.get("#{base}/parts?seconds=0.1", stream: true).each { |part| parts << part }
      end

      assert_equal("one\ntwo\nthree\n", parts.join)
      assert_operator(parts.size, :>=, 3)
    ensure
      one&.close
    end
  end
end
