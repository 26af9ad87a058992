# frozen_string_literal: true

# bin/test: takes 3 s, 0.3 of a core

require_relative "../test_helper"
require "support/clients"
require "support/http_server"
require "net/http"

# timecop stops and moves the clock of Ruby's Time. Heddle's waits go by another clock.
contract "Timecop" do
  extend TestSupport::Clients

  client "timecop"

  def teardown
    Timecop.return
    super
  end

  # What every wait takes must not depend on it.
  def assert_waits_as_always
    heddle_only("Heddle's own waits are asked, too")
    Heddle.run(backend: backend) do
      server = keep(TestSupport::HttpServer.new)
      { 0.1 => -> { sleep(0.1) },
        0.11 => -> { Thread::Queue.new.pop(timeout: 0.11) },
        0.12 => -> { assert_raises(Timeout::Error) { Timeout.timeout(0.12) { sleep } } },
        0.13 => -> { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.13) { sleep } } },
        0.14 => -> { assert_nil(IO.select([pipe.first], nil, nil, 0.14)) },
        0.15 => -> { assert_raises(Heddle::TimeoutError) { Heddle.scope(deadline: 0.15) { sleep } } },
        0.16 => -> { Net::HTTP.get(URI("http://#{host}:#{server.port}/sleep/0.16")) },
        0.17 => lambda {
          assert_raises(Net::ReadTimeout) do
            impatient(server, 0.17).get("/sleep/20")
          end
        } }.each do |time, wait|
        Heddle.spawn { assert_includes((time * 0.9)..20, elapsed(&wait)) }
      end
    end
  end

  def impatient(server, seconds)
    Net::HTTP.new(host, server.port).tap do |client|
      client.read_timeout = seconds
      client.max_retries = 0
    end
  end

  # With `mock_process_clock` timecop moves this clock, too.
  def elapsed
    started = Process.clock_gettime_without_mock(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime_without_mock(Process::CLOCK_MONOTONIC) - started
  end

  def test_time_stands_still
    Timecop.freeze(Time.at(0)) { assert_waits_as_always }
  end

  def test_time_has_moved
    [-1_000_000, 1_000_000].each { |seconds| Timecop.travel(Time.now + seconds) { assert_waits_as_always } }
  end

  def test_time_is_fast
    Timecop.scale(3600) { assert_waits_as_always }
  end

  # Also with timecop's own setting that moves Ruby's monotonic clock.
  def test_the_monotonic_clock_stands_still
    Timecop.mock_process_clock = true

    Timecop.freeze(Time.at(0)) { assert_waits_as_always }
  ensure
    Timecop.mock_process_clock = false
  end

  # It stops for a whole thread: the tasks beside it see that, too.
  def test_a_task_freezes_the_time
    heddle_only("it is about tasks")
    Heddle.run(backend: backend) do
      frozen = Heddle.spawn { Timecop.freeze(Time.at(7)) { sleep(0.05) && Time.now.to_i } }
      beside = Heddle.spawn { sleep(0.01) && Time.now.to_i }

      assert_equal([7, 7], [frozen.value, beside.value])
      assert_operator(Time.now.to_i, :>, 7)
    end
  end

  def test_every_and_rate_limiter
    heddle_only("they are Heddle's")
    [false, true].each do |process_clock|
      Timecop.mock_process_clock = process_clock

      Timecop.freeze(Time.at(0)) do
        assert_operator(calls_meanwhile { |limiter| 5.times { limiter.acquire } }, :>=, 3)
      end
    end
  ensure
    Timecop.mock_process_clock = false
  end

  def calls_meanwhile
    calls = 0
    Heddle.run(backend: backend) do
      Heddle.every(0.01) { calls += 1 }
      yield(Heddle::RateLimiter.new(1, per: 0.02))
    end
    calls
  end
end
