# frozen_string_literal: true

# bin/test: takes 12 s, 0.5 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/nginx"

# Typhoeus with its adapter, and an nginx that answers late.
contract "TyphoeusAdapter" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "typhoeus", server: TestSupport::Servers::Nginx

  # (FFI keeps a thread from its first callback on.)
  def before_setup
    Ethon::Easy.new.cleanup if defined?(Ethon)
    super
  end

  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/typhoeus"
  end

  # The connections that are kept for the next requests.
  def teardown
    Typhoeus::Pool.clear if defined?(Typhoeus)
    super
  end

  # The library raises nothing, and so the table does not name an error.
  def timed_out
    @timed_out ||= Class.new(StandardError) { define_singleton_method(:name) { "nothing: response.timed_out?" } }
  end

  def title = "typhoeus, with its adapter"
  def open_client(timeout:) = { timeout: timeout }
  def close_client(_) = nil
  def timeout_errors = [timed_out]
  def after_a_cancel = :usable
  def url(path, port = server.port) = "http://127.0.0.1:#{port}/#{path}"
  def url_of(number, seconds) = url("answer?number=#{number}&seconds=#{seconds}")

  def ask(options, number, seconds)
    # (libcurl has whole seconds, or milliseconds.)
    response = Typhoeus.get(url_of(number, seconds), timeout_ms: (options[:timeout] * 1000).to_i)
    raise timed_out, response.return_message if response.timed_out?

    Integer(response.body)
  end

  # So that the adapter can be dropped when the library asks the scheduler.
  def test_without_the_adapter
    count = Integer(assert_script(<<~RUBY, gems: true))
      $VERBOSE = false
      require "heddle"
      require "typhoeus"
      turns = 0
      Heddle.run do
        Heddle.every(0.01) { turns += 1 }
        Typhoeus.get("#{url_of(1, 0.3)}")
      end
      print(turns)
    RUBY

    assert_operator(count, :<, 3)
  end

  def test_hydra
    reactor do
      answers = []
      assert_overlaps(2 * 5) do
        answers = all_at_once(2) do |turn|
          hydra = Typhoeus::Hydra.new
          requests = Array.new(5) { |i| Typhoeus::Request.new(url_of((turn * 5) + i, 0.3)) }
          requests.each { |request| hydra.queue(request) }
          hydra.run
          hydra.multi.handle.free # its connections stay open until then
          requests.map { |request| request.response.body }
        end.first.flatten
      end

      assert_equal([*0...10].map(&:to_s), answers)
    end
  end

  def test_cancel_of_a_hydra
    hydra = Typhoeus::Hydra.new
    completed = []
    assert_cancels do
      2.times { |i| hydra.queue(Typhoeus::Request.new(url_of(i, 20)).tap { |one| one.on_complete { completed << i } }) }
      hydra.run
    end

    assert_empty(completed)
    reactor do
      request = Typhoeus::Request.new(url_of(3, 0))
      hydra.queue(request)
      hydra.run

      assert_equal("3", request.response.body)
    end
  ensure
    hydra.multi.cleanup
  end

  def test_a_timeout_around
    reactor do
      assert_times_out(0.4, Timeout::Error) { Timeout.timeout(0.4) { Typhoeus.get(url_of(1, 20)) } }
      assert_equal("2", Typhoeus.get(url_of(2, 0)).body)
    end
  end

  def test_connecting_by_name
    reactor do
      assert_equal("5", Typhoeus.get("http://localhost:#{server.port}/answer?number=5&seconds=0").body)
      port = silent_port
      response = nil
      assert_others_run { response = Typhoeus.get(url("", port), connecttimeout_ms: 200) }

      assert_predicate(response, :timed_out?)
    end
  end

  def test_a_large_body_both_ways
    reactor do
      body = "0123456789" * 500_000
      answers, = all_at_once(3) { Typhoeus.post(url("echo"), body: body).body }

      assert_equal([true] * 3, answers.map { |answer| answer == body })
    end
  end

  def test_parts_and_callbacks
    reactor do
      parts = []
      request = Typhoeus::Request.new(url("parts?seconds=0.1"))
      request.on_body { |chunk| parts << [chunk, sleep(0.001)].first }
      request.on_complete { |response| sleep(0.01) && (parts << response.code) }
      assert_others_run { request.run }

      assert_equal(["one\ntwo\nthree\n", 200], [parts[..-2].join, parts.last])
    end
  end

  def test_https
    reactor do
      response = Typhoeus.get("https://localhost:#{server.tls_port}/answer?number=7&seconds=0.1",
                              cainfo: server.certificate_file, followlocation: true)

      assert_equal(["7", :ok], [response.body, response.return_code])
    end
  end

  # A connection is used again, as by libcurl alone.
  def test_connections_are_kept
    reactor do
      easy = Ethon::Easy.new(url: url_of(1, 0))
      counts = Array.new(3) do
        assert_equal(:ok, easy.perform)
        Ethon::Curl.get_info_long(:num_connects, easy.handle)
      end
      easy.cleanup

      assert_equal([1, 0, 0], counts)
    end
  end

  # libcurl cannot tell of a descriptor above 1,023.
  def test_many_descriptors
    skip("too few descriptors") if Process.getrlimit(:NOFILE).first < 2000
    1100.times { keep(File.open(File::NULL)) }

    reactor { assert_others_run { assert_equal("4", Typhoeus.get(url_of(4, 0.2)).body) } }
  end

  def test_without_a_task
    assert_equal("1", Typhoeus.get(url_of(1, 0)).body)
  end
end
