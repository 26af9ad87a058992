# frozen_string_literal: true

require_relative "../../test_helper"

# Thread#raise, Thread#kill and Timeout from outside reach the Heddle.run of the thread, wherever they are raised. What
# a block raises by itself ends its fiber only.
contract "ThreadRaise" do
  heddle_only "schedulers"

  # A thread with a scheduler in which the block computes: in a plain fiber, in a task or in the main block. Yields it
  # when it does. What it has come to.
  def computing(starter, block = nil)
    name = backend
    events = Thread::Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) do
        Fiber.schedule { sleep } # it would go on for ever
        start(starter) { (events << :computes) && (block || -> { compute }).call }
        sleep
      end
    end

    assert_equal(:computes, events.pop(timeout: 60))
    yield thread

    assert(thread.join(60), "the thread goes on")
    thread.value
  ensure
    thread&.kill
  end

  def start(starter, &block)
    case starter
    when :schedule then Fiber.schedule(&block)
    when :spawn then Heddle.spawn(&block)
    when :enumerator then Fiber.schedule { Enumerator.new { |yielder| yielder << block.call }.next }
    else block.call
    end
  end

  def compute = loop { 9.times { |i| i.to_s } }

  %i[schedule spawn enumerator main].each do |starter|
    define_method("test_raise_while_computing_in_#{starter}") do
      sent = ZeroDivisionError.new("sent")

      assert_same(sent, assert_raises(ZeroDivisionError) { computing(starter) { |thread| thread.raise(sent) } })
    end

    define_method("test_kill_while_computing_in_#{starter}") do
      assert_nil(computing(starter, &:kill))
    end

    define_method("test_outer_timeout_while_computing_in_#{starter}") do
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.1) { Heddle.run(backend: backend) { start(starter) { compute } && sleep } }
      end
    end
  end

  { "a class" => [ZeroDivisionError], "a message" => ["text"], "all" => [ZeroDivisionError, "text", %w[here]],
    "nothing" => [] }.each do |title, arguments|
    define_method("test_arguments_#{title}") do
      error = assert_raises(StandardError) { computing(:schedule) { |thread| thread.raise(*arguments) } }
      expected = assert_raises(StandardError) { plain_raise(arguments) }

      assert_equal([expected.class, expected.message], [error.class, error.message])
      assert_equal(expected.backtrace, error.backtrace) if arguments.size == 3
    end
  end

  def plain_raise(arguments)
    thread = Thread.new do
      Thread.current.report_on_exception = false
      sleep
    end
    thread.raise(*arguments)
    thread.value
  end

  def test_wrong_arguments
    computing(:schedule) do |thread|
      assert_raises(TypeError) { thread.raise(3) }
      thread.kill
    end
  end

  def test_cause
    skip("Thread#raise knows no cause: before 4.0") if RUBY_VERSION < "4.0"
    cause = IOError.new("the cause")
    error = assert_raises(ZeroDivisionError) do
      computing(:schedule) do |thread|
        thread.raise(ZeroDivisionError, cause:)
      end
    end

    assert_same(cause, error.cause)
  end

  # As with threads, who rescues it has it.
  def test_rescued_in_the_block
    rescued = Thread::Queue.new
    block = lambda do
      compute
    rescue ZeroDivisionError => e
      rescued << e
    end
    computing(:schedule, block) do |thread|
      thread.raise(ZeroDivisionError)

      assert_instance_of(ZeroDivisionError, rescued.pop(timeout: 60))
      thread.join(0.05) and flunk("the thread has ended")
      thread.kill
    end
  end

  def test_rescued_and_raised_again
    block = lambda do
      compute
    rescue ZeroDivisionError
      sleep(0.01)
      raise
    end

    assert_raises(ZeroDivisionError) { computing(:schedule, block) { |thread| thread.raise(ZeroDivisionError) } }
  end

  def test_what_the_block_raises_ends_its_fiber_only
    ended = false
    _, said = capture_io do
      Heddle.run(backend: backend) do
        Fiber.schedule { raise ZeroDivisionError, "by itself" }
        Fiber.schedule { Timeout.timeout(0.02) { compute } }
        sleep(0.1)
        ended = true
      end
    end

    assert(ended)
    assert_match(/by itself/, said)
    assert_match(/execution expired/, said)
  end

  def test_a_thread_without_a_scheduler_after_one
    name = backend
    ready = Thread::Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) { sleep(0.001) }
      ready << true
      sleep
    end
    ready.pop
    thread.raise(ZeroDivisionError)

    assert_raises(ZeroDivisionError) { thread.join }
  end
end
