# frozen_string_literal: true

require "monitor"
require "stringio"
require "timeout"

require_relative "../../test_helper"

# Nobody can unlock a Mutex but its holder. If that waits for whoever wants the lock, it is an error, whatever other
# threads, signals and connections there are.
contract "LockCircles" do
  heddle_only "Heddle::Deadlock"

  # In none of these cases Heddle can know that nothing will wake the tasks.
  beside = {
    "a_thread" => ->(test) { test.keep_thread(Thread.new { sleep }) },
    "a_handler" => ->(_) { trap("USR2") { nil } },
    "a_server" => ->(test) { Heddle.spawn(background: true) { test.tcp_server.accept } },
    "a_sleep" => ->(_) { Heddle.spawn(background: true) { sleep } }
  }

  { "mutexes" => Thread::Mutex, "monitors" => Monitor }.each do |kind, lock|
    beside.each do |name, start|
      define_method("test_a_circle_of_#{kind}_beside_#{name}") do
        run do
          start.call(self)
          locks = Array.new(3) { lock.new }
          errors = circle(locks).map { |task| task.wait.error }

          assert_equal([Heddle::Deadlock] * 3, errors.map(&:class))
          assert_equal([:unlocked] * 3, locks.map { |one| one.synchronize { :unlocked } })
        end
      end
    end
  end

  # As a connection in a transactional test of Rails: the block of the run holds its lock.
  { "map" => ->(held) { Heddle.map([1, 2]) { held.synchronize { 1 } } },
    "a_scope" => ->(held) { Heddle.scope { |scope| scope.spawn { held.synchronize { 1 } } } },
    "a_scope_in_a_task" => lambda do |held|
      Heddle.spawn { Heddle.scope { |scope| scope.spawn { held.synchronize { 1 } } } }.value
    end }.each do |name, wait|
    define_method("test_a_holder_that_waits_for_the_end_of_#{name}") do
      needs_patch(:callers_fiber)
      [Thread::Mutex, Monitor].each do |lock|
        held = lock.new
        error = assert_raises(Heddle::Deadlock) do
          run { Heddle.spawn(background: true) { sleep } && held.synchronize { wait.call(held) } }
        end

        assert_match(/\Athe task waits for the lock of .*, whose holder waits for the task$/, error.message)
      end
    end
  end

  def test_the_error_names_the_tasks_and_their_places
    run do
      error = circle(Array.new(2) { Thread::Mutex.new }).map { |task| task.wait.error }.first

      assert_match(/\A2 tasks wait for each other's locks in a circle\n/, error.message)
      assert_match(/^task "0": waits for the lock of .*, which task "1" holds, at #{__FILE__}:\d+,/, error.message)
    end
  end

  # A task that waits for a lock of the circle gets it then; and no other waiter gets an exception.
  def test_tasks_outside_of_the_circle
    run do
      queue = Thread::Queue.new
      locks = Array.new(4) { Thread::Mutex.new }
      holder = Heddle.spawn { locks[3].synchronize { queue.pop } }
      others = locks.map { |lock| Heddle.spawn { sleep(0.03) && lock.synchronize { :locked } } }
      tasks = circle(locks.first(3))

      assert_equal([Heddle::Deadlock] * 3, tasks.map { |task| task.wait.error.class })
      assert_equal([:locked] * 3, others.first(3).map(&:value))
      assert_nil(others.last.wait(0.3))
      queue << :pushed

      assert_equal(%i[pushed locked], [holder.value, others.last.value])
    end
  end

  # Its end will come.
  def test_a_circle_in_a_timeout
    run do
      one, other = Array.new(2) { Thread::Mutex.new }
      task = Heddle.spawn do
        Timeout.timeout(0.3) { one.synchronize { sleep(0.01) && other.synchronize { nil } } }
      rescue Timeout::Error
        :over
      end
      second = Heddle.spawn { other.synchronize { sleep(0.01) && one.synchronize { :locked } } }

      assert_equal(%i[over locked], [task.value, second.value])
    end
  end

  # The task holds the lock, and waits for the fiber that wants it.
  { "mutex" => Thread::Mutex, "monitor" => Monitor }.each do |kind, lock|
    define_method("test_a_#{kind}_of_the_task_that_has_resumed_the_fiber") do
      keep_thread(Thread.new { sleep })
      run do
        held = lock.new
        wants = -> { held.synchronize { :locked } }
        held.synchronize do
          [Enumerator.new { |to| to << wants.call }, Fiber.new { wants.call }].each do |fiber|
            error = assert_raises(ThreadError) { fiber.is_a?(Fiber) ? fiber.resume : fiber.next }
            assert_match(/deadlock/, error.message)
          end
        end

        assert_equal(:locked, Enumerator.new { |to| to << wants.call }.next)
      end
    end
  end

  def test_a_fiber_waits_for_a_lock_of_another_task
    run do
      mutex = Thread::Mutex.new
      holder = Heddle.spawn { mutex.synchronize { sleep(0.02) && :held } }
      sleep(0.001)

      assert_equal(:locked, Enumerator.new { |to| to << mutex.synchronize { :locked } }.next)
      assert_equal(:held, holder.value)
    end
  end

  def test_the_dump_names_the_holder
    run do
      mutex = Thread::Mutex.new
      holder = Heddle.spawn(name: "holder") { mutex.synchronize { sleep } }
      waiting = Heddle.spawn(name: "waiting") { mutex.synchronize { nil } }
      sleep(0.01)
      text = StringIO.new.tap { |io| Heddle.dump(io) }.string
      [waiting, holder].each(&:cancel)

      assert_match(/^task "waiting": waits for the lock of .*, which task "holder" holds, at #{__FILE__}:\d+,/, text)
    end
  end

  # As in plain Ruby, where that is fatal.
  def test_all_threads_have_stopped
    out = assert_script(<<~RUBY)
      stopped = Thread.new { Thread.stop }
      begin
        Heddle.run(backend: #{backend.inspect}) { Thread.stop }
      rescue Heddle::Deadlock => e
        puts e.message[/^task "main": .*,/]
      end
    RUBY

    assert_equal("task \"main\": waits for a Thread#wakeup,\n", out)
  end

  def keep_thread(thread) = (@kept_threads ||= []) << thread

  def teardown
    @kept_threads&.each { |thread| thread.kill.join }
    trap("USR2", "DEFAULT")
    super
  end

  private

  # Tasks that hold a lock each, and want that of the next one.
  def circle(locks)
    locks.each_index.map do |number|
      Heddle.spawn(name: number.to_s, isolated: true) do
        locks[number].synchronize { sleep(0.02) && locks[(number + 1) % locks.size].synchronize { nil } }
      end
    end
  end
end
