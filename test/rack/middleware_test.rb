# frozen_string_literal: true

# bin/test: takes 3 s, 0.5 of a core

require_relative "../test_helper"
require "heddle/rack"

# Heddle::Rack::Middleware by itself; servers_test.rb has it in servers.
contract "RackMiddleware" do
  heddle_only "it is about tasks"

  def before_setup
    @backend_before = ENV.fetch("HEDDLE_BACKEND", nil)
    ENV["HEDDLE_BACKEND"] = backend unless reference?
    super
  end

  def after_teardown
    super
    ENV["HEDDLE_BACKEND"] = @backend_before
  end

  def call(env = {}, &app) = Heddle::Rack::Middleware.new(app).call(env)

  def text(body, **headers) = [200, { "content-type" => "text/plain", **headers.transform_keys(&:to_s) }, body]

  def test_the_application_spawns_and_its_tasks_are_waited_for
    done = []
    answer = call { Heddle.spawn { sleep(0.01) && done.push(1) } && text(["hello"]) }

    assert_equal(text(["hello"]), answer)
    assert_equal([1], done)
    assert_nil(Fiber.scheduler)
  end

  def test_an_answer_with_an_array_is_handed_on_as_it_is
    answer = text(["hello"])

    assert_same(answer, call { answer })
    body = [].each
    body.define_singleton_method(:to_path) { "/" }

    assert_same(body, call { text(body) }.last)
  end

  # As those of Rails.
  def test_a_body_that_may_be_an_array
    list = nil
    body = Object.new
    body.define_singleton_method(:to_ary) { list }
    body.define_singleton_method(:each) { |&block| block.call(Heddle.spawn { "part" }.value) }
    wrapped = call { text(body) }.last

    assert_nil(wrapped.to_ary)
    assert_equal(%w[part], wrapped.each.to_a)
    list = %w[all]

    assert_same(list, wrapped.to_ary)
  end

  def test_an_answer_that_the_application_makes_of_a_failure
    answer = call do
      Heddle.spawn { raise IOError, "gone" }.value
    rescue IOError => e
      text([e.message])
    end

    assert_equal(text(["gone"]), answer)
  end

  # As those of Warden, when its middleware is inside of this one.
  def test_a_throw_within_the_run_is_no_error
    answer = call do
      catch(:warden) do
        throw(:warden, text(["who are you?"]))
      rescue StandardError
        text(["an error"])
      end
    end

    assert_equal(text(["who are you?"]), answer)
  end

  # Nobody else would tell of it.
  def test_a_failure_of_which_the_application_does_not_know
    [0.001, nil].each do |late|
      error = assert_raises(IOError) do
        call { Heddle.spawn { (late && sleep(late) && nil) || raise(IOError, "gone") } && text([]) }
      end

      assert_equal("gone", error.message)
    end
  end

  def test_each_of_a_body_has_a_run
    closed = false
    body = Object.new
    body.define_singleton_method(:each) { |&block| block.call(Heddle.spawn { "part" }.value) }
    body.define_singleton_method(:close) { closed = true }
    wrapped = call { text(body) }.last

    assert_equal(%w[part], wrapped.each.to_a)
    refute(closed)
    wrapped.close

    assert(closed)
    refute_respond_to(wrapped, :call)
    refute_respond_to(wrapped, :to_ary)
  end

  # A body of three parts, for each of which a task is asked.
  def parts(ended = [])
    body = Object.new
    body.define_singleton_method(:each) do |&block|
      3.times { |number| block.call(Heddle.spawn { sleep(0.001) && "part #{number}" }.value) }
    rescue StandardError => e
      ended << e
    ensure
      ended << :ensure
    end
    call { text(body) }.last
  end

  def test_break_leaves_a_body
    ended = []
    all = []
    left = parts(ended).each do |part|
      all << part
      break part.upcase if part.end_with?("1")
    end

    assert_equal(["PART 1", ["part 0", "part 1"]], [left, all])
    assert_equal([:ensure], ended)
    body = Object.new
    body.define_singleton_method(:each) { |&block| Heddle.spawn { sleep } && block.call("part") }

    assert_equal("part", call { text(body) }.last.enum_for(:each).first, "it waits for a task of the body")
    assert_equal(["part 0"], parts.each.first(1))
    assert_equal("part 0", parts.enum_for(:each).first)
    assert_nil(Fiber.scheduler)
  end

  def test_a_body_as_an_enumerator
    each = parts.each

    assert_equal(["part 0", "part 1"], Array.new(2) { each.next })
    assert_nil(Fiber.scheduler)
    assert_equal("part 2", each.next)
    assert_raises(StopIteration) { each.next }
    assert_equal(["part 0"] * 2, [parts.to_enum(:each).next, parts.enum_for.next], "protocol-rack reads so")
    assert_equal(["part 0!", "part 1!"], parts.each.lazy.map { |part| "#{part}!" }.first(2))
  end

  def test_a_body_that_is_called_has_a_run
    parts = []
    wrapped = call { text(->(stream) { stream << Heddle.spawn { "part" }.value }) }.last
    wrapped.call(parts)

    assert_equal(%w[part], parts)
    assert_nil(wrapped.close)
    refute_respond_to(wrapped, :each)
  end

  def test_a_hijack_of_the_answer_has_a_run
    parts = []
    hijack = ->(stream) { stream << Heddle.spawn { "part" }.value }
    headers = call { text([], "rack.hijack": hijack).freeze }[1]
    headers["rack.hijack"].call(parts)

    assert_equal(%w[part], parts)
    assert_equal("text/plain", headers["content-type"])
  end

  def test_errors_of_the_application_and_of_its_tasks
    assert_equal("own", assert_raises(RuntimeError) { call { raise("own") } }.message)
    assert_equal("of a task", assert_raises(RuntimeError) { call { Heddle.spawn { raise("of a task") } } }.message)
    assert_raises(IOError) { call { text([1].each) }.last.each { |_| gone } }
    assert_nil(Fiber.scheduler)
  end

  def gone = raise(IOError, "the client has gone")
  def leave(value) = throw(:warden, value)

  def test_a_throw_reaches_the_catch_around_it
    assert_equal(:by_the_block, catch(:warden) { call { leave(:by_the_block) } })
    assert_equal(:by_a_task, catch(:warden) { call { Heddle.map(1..3) { leave(:by_a_task) } } })
    assert_nil(Fiber.scheduler)
  end

  def test_fiber_locals_are_those_of_the_server
    Thread.new do
      Thread.current[:outside] = "outside"
      Fiber[:storage] = "kept"
      seen = nil
      call do
        seen = [Thread.current[:outside], Fiber[:storage]]
        Thread.current[:inside] = "inside"
        text([])
      end

      assert_equal(%w[outside kept], seen)
      assert_equal("inside", Thread.current[:inside])
    end.join
  end

  # As rack-timeout does it.
  def test_what_is_raised_in_the_thread_ends_the_tasks
    begun = Thread::Queue.new
    ended = []
    thread = Thread.new do
      call do
        Heddle.spawn do
          (begun << true) && sleep(60)
        ensure
          ended << 1
        end
        sleep(60)
      end
    rescue Interrupt => e
      e.message
    end
    begun.pop
    thread.raise(Interrupt, "too long")

    assert_equal("too long", thread.value)
    assert_equal([1], ended)
  end

  def test_it_only_calls_the_application_where_a_run_is_open
    body = [].each
    task = nil
    Heddle.run(backend: backend) do
      gate = Thread::Queue.new
      answer = call { (task = Heddle.spawn { gate.pop }) && text(body) }

      assert_same(body, answer.last)
      refute_predicate(task, :finished?)
      gate << :open
    end

    assert_equal(:open, task.value)
  end

  def test_the_application_is_asked_for
    error = assert_raises(ArgumentError) { Heddle::Rack::Middleware.new(nil) }

    assert_match(/\Aapp: /, error.message)
  end
end
