# frozen_string_literal: true

# bin/test: takes 3 s, 0.6 of a core

require_relative "../test_helper"
require "support/clients"
require "support/servers/nginx"

# Blocks of the gem async in tasks, with the adapter, and async-http with an nginx that answers late.
contract "AsyncAdapter" do
  extend TestSupport::Clients

  client "async-http", file: "async/http/internet", server: TestSupport::Servers::Nginx

  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/async"
  end

  def ask(number, seconds)
    Sync do
      internet = Async::HTTP::Internet.new
      response = internet.get("http://127.0.0.1:#{server.port}/answer?number=#{number}&seconds=#{seconds}")
      Integer(response.read)
    ensure
      internet&.close
    end
  end

  def test_without_the_adapter
    output = assert_script(<<~RUBY, gems: true)
      $VERBOSE = false
      require "heddle"
      require "async"
      Heddle.run do
        [-> { Async { 1 } }, -> { Sync { 1 } }].each do |call|
          call.call
        rescue Heddle::Error => e
          puts(e.message)
        end
      end
    RUBY

    assert_equal([true] * 2, output.lines.map { |line| line.include?('require "heddle/adapters/async"') })
  end

  def test_async_http
    reactor do
      assert_overlaps(10) do
        values, = all_at_once(10) { |number| ask(number, 0.2) }

        assert_equal([*0...10], values)
      end
    end
  end

  def test_sync_returns_the_value
    reactor do
      value = assert_others_run do
        Sync { |task| Array.new(3) { |number| task.async { sleep(0.1) && number } }.map(&:wait) }
      end

      assert_equal([0, 1, 2], value)
      assert_equal([1, 2], Sync { Sync { [1, Async { 2 }.wait] } })
    end
  end

  # When all that it has started has ended, too.
  def test_async_returns_the_task
    reactor do
      events = []
      task = assert_others_run do
        Async do |parent|
          parent.async { sleep(0.1) && (events << :child) }
          7
        end
      end

      assert_equal([[:child], 7], [events, task.wait])
    end
  end

  def test_its_error_is_raised
    reactor { assert_raises(IOError) { Sync { raise IOError, "it failed" } } }
  end

  def test_a_timeout_around
    ended = []
    reactor do
      assert_times_out(0.4, Timeout::Error) do
        Timeout.timeout(0.4) do
          Sync do |task|
            task.async { endless(ended) }
            endless(ended)
          end
        end
      end

      assert_equal(5, ask(5, 0))
    end

    assert_equal(%i[ended ended], ended)
  end

  def endless(ended)
    sleep
  ensure
    ended << :ended
  end

  def test_cancel
    ended = []
    assert_cancels { Sync { endless(ended) } }

    assert_equal([:ended], ended)
  end

  def test_without_a_task
    assert_equal(3, Sync { 3 })
    assert_equal(4, Async { 4 }.wait)
  end
end
