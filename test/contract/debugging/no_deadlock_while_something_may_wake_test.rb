# frozen_string_literal: true

# bin/test: takes 15 s, 0.4 of a core

require_relative "../../test_helper"

# Heddle::Deadlock is not raised where something may still wake a fiber: never where plain threads would wait on. Each
# program runs by itself, and also on plain threads.
contract "NoDeadlock" do
  # What the block's value is when it waits in a task, and in a thread.
  def assert_waits(value, body, before: "", assert: :assert_script, **)
    opening = reference? ? "Thread.new do" : "Heddle.run(backend: #{backend.inspect}) do"
    closing = reference? ? "end.value" : "end"
    out = send(assert, "#{before}\np(#{opening}\n#{body}\n#{closing})", options: ["-W:no-experimental"], **)

    assert_equal("#{value.inspect}\n", out)
  end

  def taken = ruby_at_least?("4.0") ? "value" : "take"

  def test_a_thread_waits_for_the_value_of_a_ractor
    assert_waits(5, <<~RUBY)
      ractor = Ractor.new { sleep(0.25); 5 }
      Thread.new { ractor.#{taken} }.value
    RUBY
  end

  def test_a_thread_that_waits_for_a_ractor_fills_a_queue
    assert_waits(5, <<~RUBY)
      queue = Queue.new
      ractor = Ractor.new { sleep(0.25); 5 }
      Thread.new { queue << ractor.#{taken} }
      queue.pop
    RUBY
  end

  def test_a_thread_waits_for_a_message_of_a_ractor
    assert_waits(6, <<~RUBY)
      Ractor.new(Ractor.current) { |main| sleep(0.25); main.send(6) }
      Thread.new { Ractor.receive }.value
    RUBY
  end

  def test_a_thread_waits_for_one_of_several_ractors
    assert_waits(7, <<~RUBY)
      ractor = Ractor.new { sleep(0.25); 7 }
      Thread.new { Ractor.select(ractor).last }.value
    RUBY
  end

  def test_a_thread_joins_a_ractor
    skip("Ruby 4.0") unless ruby_at_least?("4.0")

    assert_waits(true, "Thread.new { Ractor.new { sleep(0.25) }.join.is_a?(Ractor) }.value")
  end

  def test_a_thread_waits_at_a_port
    skip("Ruby 4.0") unless ruby_at_least?("4.0")

    assert_waits(8, <<~RUBY)
      port = Ractor::Port.new
      Ractor.new(port) { |one| sleep(0.25); one << 8 }
      Thread.new { port.receive }.value
    RUBY
  end

  def test_a_task_joins_a_thread_that_joins_another_that_waits_for_a_ractor
    assert_waits(9, <<~RUBY)
      ractor = Ractor.new { sleep(0.25); 9 }
      first = Thread.new { ractor.#{taken} }
      Thread.new { first.value }.value
    RUBY
  end

  # Ruby raises fatal there, unless told to ignore deadlocks.
  def test_the_handler_of_a_signal
    body = <<~RUBY
      queue = Queue.new
      trap("USR1") { queue << :pushed }
      spawn("sleep 0.25; kill -USR1 \#{Process.pid}")
      queue.pop
    RUBY

    assert_waits(:pushed, body, before: "Thread.ignore_deadlock = true")
    assert_waits(:pushed, body) unless reference?
    assert_waits(:pushed, body, env: { "HEDDLE_DUMP" => "USR2" }) unless reference?
  end

  # Ruby says "sleep_forever" of a thread that sleeps there.
  def test_threads_that_move_between_native_threads
    ["sleep(0.25)", "Queue.new.pop(timeout: 0.25)", "IO.popen('sleep 0.25', &:read)", "IO.select([], [], [], 0.25)"]
      .each { |wait| assert_waits(1, "Thread.new { #{wait} && 0; 1 }.value", assert: :assert_script_of_moving_threads) }
  end

  def test_threads_of_another_ractor
    heddle_only("Heddle.run")
    skip("Ruby 4.0") unless ruby_at_least?("4.0")

    assert_waits(1, <<~RUBY)
      Ractor.new { Heddle.run { Thread.new { sleep(0.25) && 1 }.value } }.#{taken}
    RUBY
  end

  # A class of the program's may say of itself what it likes.
  def test_threads_that_look_otherwise
    assert_waits(1, <<~RUBY, before: 'class Silent < Thread; def inspect = "#<Silent sleep_forever>"; end')
      Silent.new { sleep(0.25) && 1 }.value
    RUBY
  end

  def test_a_thread_that_has_been_woken_and_has_not_run_yet
    assert_waits([1] * 20, <<~RUBY)
      mutex = Mutex.new
      threads = Array.new(20) { Thread.new { mutex.synchronize { sleep(0.02) && 1 } } }
      threads.map(&:value)
    RUBY
  end

  # With all that, a deadlock is still seen.
  def test_a_deadlock_among_tasks_and_threads
    heddle_only("Heddle::Deadlock")
    ["Queue.new.pop", "Thread.new { Queue.new.pop }.value", "Thread.new { Thread.stop }.join",
     "Ractor.new { 1 }.#{taken}; mutex = Mutex.new.lock; Thread.new { mutex.lock }.value"].each do |wait|
      out = assert_script(<<~RUBY, env: { "HEDDLE_DUMP" => "USR2" }, options: ["-W:no-experimental"])
        trap("USR1") { nil }
        trap("USR1", "DEFAULT")
        begin
          Heddle.run(backend: #{backend.inspect}) { #{wait} }
        rescue Heddle::Deadlock => e
          puts e.message.lines.first
        end
      RUBY

      assert_match(/\Aevery fiber waits/, out, wait)
    end
  end
end
