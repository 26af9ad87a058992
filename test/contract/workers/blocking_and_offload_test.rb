# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.blocking and Heddle.offload.
contract "BlockingAndOffload" do
  heddle_only "Heddle.offload"

  def run(*, **options, &block)
    block ? Heddle.run(backend: backend, **options, &block) : super(*)
  end

  def test_blocking_holds_up_the_others
    run do
      order = []
      other = Heddle.spawn { sleep(0.001) && (order << :other) }
      value = Heddle.blocking do
        sleep(0.03)
        Heddle.blocking { sleep(0.01) }
        sleep(0.01)

        assert_predicate(Fiber.current, :blocking?)
        order << :blocking
        :value
      end
      order << :after
      other.wait

      assert_equal([:value, %i[blocking after other]], [value, order])
      refute_predicate(Fiber.current, :blocking?)
    end
  end

  def test_the_error_of_a_blocking_block
    run do
      assert_raises(IOError) { Heddle.blocking { raise IOError } }
      assert_equal(:goes_on, Heddle.spawn { sleep(0.001) && :goes_on }.value)
    end
  end

  def test_without_a_run
    assert_equal([1, 2], [Heddle.blocking { 1 }, Heddle.offload { 2 }])
    assert_raises(ArgumentError) { Heddle.blocking }
    assert_raises(ArgumentError) { Heddle.offload }
  end

  def test_offload_lets_the_others_run
    run do
      gate = Thread::Queue.new
      Heddle.spawn { sleep(0.001) && (gate << :opened) }
      thread = Thread.current
      seen = Heddle.offload { [gate.pop, Thread.current] }

      assert_equal(:opened, seen.first)
      refute_same(thread, seen.last)
    end
  end

  def test_the_values_of_many
    run do
      tasks = Array.new(100) { |i| Heddle.spawn { Heddle.offload { Thread.pass || i } } }

      assert_equal([*0...100], tasks.map(&:value))
      assert_nil(Heddle.offload { nil })
    end
  end

  def test_the_error_of_an_offloaded_block
    run do
      error = assert_raises(IOError) { Heddle.offload { raise IOError, "in the worker" } }
      lines = error.backtrace.grep(/#{Regexp.escape(File.basename(__FILE__))}/)

      assert_equal("in the worker", error.message)
      assert_operator(lines.size, :>=, 2, error.backtrace.inspect)
      assert_empty(error.backtrace.grep(%r{lib/heddle}))
    end
  end

  def test_storage_is_seen
    run do
      Fiber[:request] = 7

      assert_equal(7, Heddle.offload { Fiber[:request] })
      assert_nil(Heddle.spawn { Fiber[:request] = nil } && Heddle.offload { Thread.current[:request] })
    end
  end

  def test_an_offloaded_block_may_run_heddle
    name = backend
    run do
      value = Heddle.offload { Heddle.run(backend: name) { Heddle.spawn { sleep(0.001) && :inner }.value } }

      assert_equal(:inner, value)
    end
  end

  # In place of an interrupt, and once.
  def test_a_cancel_calls_what_makes_the_block_end
    run do
      gate = Thread::Queue.new
      ended = nil
      stops = 0
      stop = -> { (stops += 1) && gate.close }
      task = Heddle.spawn do
        Heddle.offload(stop: stop) { (gate.pop || raise(IOError, "closed")) && ended = true }
      end
      task.wait(0.02)
      2.times { task.cancel }
      task.wait

      assert_predicate(task, :cancelled?)
      assert_equal([1, nil], [stops, ended])
    end
  end

  # What the block returns then may be anything.
  def test_a_timeout_where_the_block_ends_well
    run do
      events = []
      task = Heddle.spawn(isolated: true) do
        Timeout.timeout(0.2) { events << Heddle.offload(stop: -> {}) { sleep(0.4) && (events << :ended) } }
      end

      assert_instance_of(Timeout::Error, task.wait.error)
      assert_equal([:ended], events)
    end
  end

  # More blocks than there are threads for short ones; and one of the short ones has its turn all the same.
  def test_blocks_that_last
    run do
      gate = Thread::Queue.new
      lasting = Array.new(70) { |i| Heddle.spawn { Heddle.offload(lasting: true) { gate.pop || i } } }

      assert_equal(:value, Heddle.offload { :value })
      gate.close

      assert_equal([*0...70], lasting.map(&:value))
    end
  end

  def test_stop_must_be_callable
    error = assert_raises(ArgumentError) { Heddle.offload(stop: 1) { 2 } }

    assert_match(/\Astop: /, error.message)
    assert_equal(2, Heddle.offload(stop: -> {}) { 2 })
  end

  def test_a_cancel_interrupts_the_block_and_waits_for_its_end
    run do
      events = []
      task = Heddle.spawn do
        Heddle.offload do
          sleep
        ensure
          events << :block
        end
      ensure
        events << :task
      end
      sleep(0.02)
      task.cancel
      task.wait

      assert_equal(%i[block task], events)
      assert_predicate(task, :cancelled?)
    end
  end

  # What a thread of the pool does works on memory of the fiber, so nothing ends the wait for it. It must not begin
  # where the stack has no room for that wait: the process stood still, with the GVL.
  {
    "offload" => -> { Heddle.offload { 1 } },
    "a_folder" => -> { Dir.children("/") },
    "a_file" => -> { File.open(File::NULL, "w", &:itself) }
  }.each do |name, call|
    define_method("test_a_recursion_that_ends_in_#{name}") do
      deeper = ->(level) { (call.call && deeper.call(level + 1)) || deeper.call(level + 1) }
      run do
        assert_raises(SystemStackError) { Heddle.spawn(isolated: true) { deeper.call(0) }.value }
        assert_equal(:goes_on, Heddle.offload { :goes_on })
      end
    end
  end

  def test_a_timeout_interrupts_the_block
    run do
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.02) { Heddle.offload { sleep } } }
      assert_equal(:goes_on, Heddle.offload { :goes_on })
    end
  end

  # -- the line ----------------------------------------------------------------------------------------------------

  # All threads of the pool are taken: a task that waits for one leaves the line at once. Blocks that offload in their
  # turn leave more threads than 64 for a while.
  def test_a_cancel_and_a_timeout_of_a_block_that_has_not_begun
    run do
      gate = Thread::Queue.new
      begun = false
      busy = Array.new(300) { Heddle.spawn { Heddle.offload { gate.pop } } }
      waiting = Heddle.spawn { Heddle.offload(stop: -> { flunk }) { begun = true } }
      settle
      waiting.cancel.wait

      assert_predicate(waiting, :cancelled?)
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { Heddle.offload { begun = true } } }
      assert_empty(busy.select(&:finished?))
      gate.close
      busy.each(&:wait)

      assert_equal(:next, Heddle.offload { :next })
      refute(begun)
    end
  end

  # Each of the 64 needs a thread while it has one.
  def test_as_many_blocks_as_there_are_threads_offload_in_their_turn
    name = backend
    all_here = Thread::Queue.new
    run do
      tasks = Array.new(64) do |i|
        Heddle.spawn do
          Heddle.offload do
            all_here << i
            sleep 0.005 until all_here.size == 64
            Heddle.run(backend: name) { Heddle.offload { Heddle.run(backend: name) { Heddle.offload { i } } } }
          end
        end
      end

      assert_equal([*0...64], tasks.map(&:value))
    end
  end

  def test_more_blocks_than_threads_offload_in_their_turn
    name = backend
    run do
      values = Heddle.map(1..200) { |i| Heddle.offload { Heddle.run(backend: name) { Heddle.offload { i } } } }

      assert_equal([*1..200], values)
    end
  end

  # -- what a block must not do --------------------------------------------------------------------------------------

  def test_a_yield_out_of_the_block
    run do
      ended = false
      error = assert_raises(FiberError) do
        Heddle.offload do
          Fiber.yield
        ensure
          ended = true
        end
      end

      assert_match(/Heddle.offload/, error.message)
      assert(ended)
      assert_raises(FiberError) { Enumerator.new { |yielder| Heddle.offload { yielder << 1 } }.next }
    end
  end

  # It is reported, and the block is interrupted.
  def test_an_error_of_stop
    heard = []
    Heddle.on_error { |error, _| heard << error.message }
    run do
      begun = Thread::Queue.new
      task = Heddle.spawn { Heddle.offload(stop: -> { raise "no way" }) { (begun << true) && sleep } }
      begun.pop
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal(["no way"], heard)
  ensure
    Heddle.on_error(nil)
  end
end
