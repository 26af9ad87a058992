# frozen_string_literal: true

require_relative "test_helper"
require "heddle/middleware"

# A body that is a file.
FileBody = Struct.new(:to_path) do
  def each = raise("the server sends the file itself")
end

# What a server may ask of a body beside its parts.
class ClosingBody
  attr_reader :closed

  def each = yield(Heddle.spawn { sleep(0.001) && "part" }.value)
  def close = @closed = true
  def size = 4
end

# Each request gets a run of its own. (In real servers: middleware/servers_test.rb.)
contract "Middleware" do
  heddle_only "it is about tasks"

  def setup
    super
    @before = ENV.fetch("HEDDLE_BACKEND", nil)
    ENV["HEDDLE_BACKEND"] = backend
  end

  def teardown
    ENV["HEDDLE_BACKEND"] = @before
    super
  end

  def call(env = {}, &app) = Heddle::Middleware.new(app).call(env)

  # The answer with this body, and what is left of a scheduler is nothing.
  def body_of(body, headers = {})
    answer = call { [200, headers, body] }

    assert_nil(Fiber.scheduler)
    answer.last
  end

  def slow(value) = Heddle.spawn { sleep(0.001) && value }

  def test_the_application_is_in_a_run
    env = { "PATH_INFO" => "/" }
    left = nil
    status, headers, body = call(env) do |given|
      left = Heddle.spawn { sleep(0.005) && :ended }
      [slow(201).value, { "x" => Fiber.scheduler.backend }, [given]]
    end

    assert_equal([201, { "x" => backend }], [status, headers])
    assert_same(env, body.first)
    assert_equal(:ended, left.value)
    assert_nil(Fiber.scheduler)
  end

  def test_what_is_raised_and_thrown_leaves_it
    error = RuntimeError.new("as it should")

    assert_same(error, assert_raises(RuntimeError) { call { raise error } })
    assert_same(error, assert_raises(RuntimeError) { call { Heddle.spawn { raise error } && sleep } })
    assert_equal(:value, catch(:warden) { call { throw(:warden, :value) } })
    assert_nil(Fiber.scheduler)
  end

  def test_an_answer_that_the_application_makes_of_a_failure
    answer = call do
      Heddle.spawn { raise IOError, "gone" }.value
    rescue IOError => e
      [503, {}, [e.message]]
    end

    assert_equal([503, {}, ["gone"]], answer)
  end

  # Nobody else would tell of it.
  def test_a_failure_after_the_application_has_answered
    error = assert_raises(IOError) do
      call do
        Heddle.spawn { sleep(0.001) && raise(IOError, "gone") }
        [200, {}, []]
      end
    end

    assert_equal("gone", error.message)
  end

  # Warden catches inside of it: who rescues all errors in between does not see the throw.
  def test_a_throw_within_it_is_no_error
    answer = call do
      catch(:warden) do
        throw(:warden, [401, {}, []])
      rescue StandardError
        [500, {}, []]
      end
    end

    assert_equal(401, answer.first)
  end

  def test_where_a_scheduler_runs_it_is_left_as_it_is
    reactor do
      task = nil
      body = -> {}
      answer = call { [200, { "rack.hijack" => body }, task = Heddle.spawn { sleep }] }

      refute_predicate(task, :finished?)
      assert_same(task, answer.last)
      assert_same(body, answer[1]["rack.hijack"])
      task.cancel
    end
  end

  # -- what the server runs later ------------------------------------------------------------------------------------

  def test_a_body_in_parts
    body = body_of(plain = ClosingBody.new)
    parts = nil
    body.each { |part| parts = [part, slow(:more).value] }

    assert_equal(["part", :more], parts)
    assert_equal(["part"], body.each.to_a)
    assert_equal(4, body.size)
    refute_respond_to(body, :call)
    body.close

    assert(plain.closed)
    assert_raises(NoMethodError) { body.unknown }
    assert_nil(Fiber.scheduler)
  end

  def test_a_body_that_writes_itself
    body = body_of(->(stream) { stream << slow("text").value })
    body.call(stream = [])

    assert_equal(["text"], stream)
    refute_respond_to(body, :each)
    refute_respond_to(body, :close)
  end

  def test_a_body_in_which_nothing_runs_is_the_same_object
    [[], ["text"], FileBody.new(__FILE__)].each { |body| assert_same(body, body_of(body)) }
  end

  def test_a_hijacked_answer
    headers = { "a" => "b", "rack.hijack" => ->(stream) { stream << slow("text").value } }.freeze
    answer = call { [200, headers, []] }
    answer[1]["rack.hijack"].call(stream = [])

    assert_equal(["text"], stream)
    assert_equal("b", answer[1]["a"])
  end

  def test_an_error_in_a_body
    body = body_of(Enumerator.new { raise Heddle.spawn(isolated: true) { raise IOError, "gone" }.wait.error })

    assert_equal("gone", assert_raises(IOError) { body.each { nil } }.message)
  end
end
