# frozen_string_literal: true

require_relative "../../test_helper"

# The values that a block and a task see of the code that has started them, and the hook that gives them more.
contract "TaskContext" do
  heddle_only "Heddle.run"

  def run(*, **options, &block)
    block ? Heddle.run(backend: backend, **options, &block) : super(*)
  end

  # In a thread of its own: what it leaves there goes with it.
  def in_thread(&) = Thread.new(&).value

  def test_the_block_sees_and_leaves_fiber_locals
    needs_patch(:callers_fiber)
    in_thread do
      Thread.current[:kept] = 1
      Thread.current[:changed] = 2
      Thread.current[:removed] = 3
      run do
        assert_equal([1, 2, 3], %i[kept changed removed].map { |key| Thread.current[key] })
        Thread.current[:changed] = 20
        Thread.current[:removed] = nil
        Thread.current[:new] = 4
        sleep(0.001)
      end

      assert_equal([1, 20, nil, 4], %i[kept changed removed new].map { |key| Thread.current[key] })
    end
  end

  def test_the_block_sees_and_leaves_storage
    needs_patch(:callers_fiber)
    in_thread do
      Fiber[:kept] = 1
      Fiber[:changed] = 2
      Fiber[:removed] = 3
      run do
        assert_equal([1, 2, 3], %i[kept changed removed].map { |key| Fiber[key] })
        Fiber[:changed] = 20
        Fiber[:removed] = nil
        Fiber[:new] = 4
        sleep(0.001)
      end

      assert_equal([1, 20, nil, 4], %i[kept changed removed new].map { |key| Fiber[key] })
      assert_equal(%i[changed kept new], Fiber.current.storage.compact.keys.sort)
    end
  end

  # ActiveSupport::IsolatedExecutionState keeps there what belongs to a request.
  def test_the_block_sees_and_leaves_what_hangs_on_the_fiber
    needs_patch(:callers_fiber)
    in_thread do
      state = { user: 1 }
      Fiber.current.instance_variable_set(:@state, state)
      run do
        assert_same(state, Fiber.current.instance_variable_get(:@state))
        Fiber.current.instance_variable_set(:@other, 2)
      end

      assert_equal(2, Fiber.current.instance_variable_get(:@other))
    end
  end

  def test_also_when_the_block_fails
    needs_patch(:callers_fiber)
    in_thread do
      assert_raises(IOError) { run { (Thread.current[:left] = 1) && raise(IOError) } }

      assert_equal(1, Thread.current[:left])
    end
  end

  def test_tasks_inherit_storage_but_no_fiber_locals
    in_thread do
      run do
        Fiber[:storage] = Thread.current[:local] = 1
        seen = Heddle.spawn { [Fiber[:storage], Thread.current[:local], (Fiber[:storage] = 2)] }.value

        assert_equal([1, nil, 2], seen)
        assert_equal(1, Fiber[:storage])
      end
    end
  end

  # -- the current task ------------------------------------------------------------------------------------------

  def test_the_current_task
    assert_nil(Heddle.current_task)
    run do
      assert_equal("main", Heddle.current_task.name)
      task = Heddle.spawn(name: "one") do
        sleep(0.001)
        [Heddle.current_task, Enumerator.new { |to| to << Heddle.current_task }.next,
         Heddle.scope { Heddle.current_task }, Fiber.new { Heddle.current_task }.resume]
      end

      assert_equal([task], task.value.uniq)
      assert_nil(Thread.new { Heddle.current_task }.value)
      plain = :unset
      Fiber.schedule { plain = Heddle.current_task }

      assert_nil(plain)
    end
  end

  # -- the hook --------------------------------------------------------------------------------------------------

  def test_a_hook_hands_to_the_task_what_its_spawner_has
    with_hook(lambda do |_|
      id = Thread.current[:request_id]
      ->(work) { (Thread.current[:request_id] = id) && work.call }
    end) do
      run do
        Thread.current[:request_id] = 7
        task = Heddle.spawn(5) { |number| sleep(0.001) && [number, Thread.current[:request_id]] }

        assert_equal([5, 7], task.value)
        assert_equal([[1, 7]], Heddle.map([1]) { |number| [number, Thread.current[:request_id]] })
      end
    end
  end

  def test_a_hook_traces
    log = []
    tracer = lambda do |task|
      log << [:made, task.name]
      lambda do |work|
        log << [:starts, Heddle.current_task.name]
        work.call
      ensure
        log << [:ends, task.name, $!.class]
      end
    end
    with_hook(tracer) do
      run { Heddle.spawn(name: "one", isolated: true) { sleep(0.001) && raise(IOError) }.wait }
    end

    assert_equal([[:made, "one"], [:starts, "one"], [:ends, "one", IOError]],
                 log)
  end

  def test_several_hooks_and_their_end
    log = []
    outer = Heddle.on_spawn { ->(work) { (log << :outer) && work.call } }
    inner = Heddle.on_spawn { ->(work) { (log << :inner) && work.call } }
    nothing = Heddle.on_spawn { nil }

    run { assert_equal(1, Heddle.spawn { (log << :work) && 1 }.value) }
    [outer, inner, nothing].each(&:remove)
    run { Heddle.spawn { log << :without }.wait }

    assert_equal(%i[outer inner work without], log)
    assert_raises(ArgumentError) { Heddle.on_spawn }
  end

  def test_a_hook_that_cancels_the_task
    hook = nil
    begun = ended = false
    run do
      hook = Heddle.on_spawn { |task| task.cancel("not now") && nil }
      task = Heddle.spawn do
        begun = true
        sleep(5)
        ended = true
      end

      assert_equal("the task was cancelled: not now", assert_raises(Heddle::Cancelled) { task.value }.message)
      assert_equal(:cancelled, task.status)
    ensure
      hook.remove
    end

    assert_equal([true, false], [begun, ended], "it ends where it first waits")
  end

  def test_a_hook_that_fails
    with_hook(->(_) { raise IOError, "in the hook" }) do
      run do
        assert_raises(IOError) { Heddle.spawn { flunk } }
        assert_equal(1, Heddle.scope { 1 })
      end
    end
  end

  # Whatever has started the task: it fails, and nobody waits for ever.
  def test_a_hook_whose_lambda_fails_or_does_not_call_the_work
    starting = { IOError => ->(_work) { raise IOError, "no tracer" }, Heddle::Error => ->(_work) {} }
    starting.each do |error, lambda|
      with_hook(->(_task) { lambda }) do
        run do
          assert_equal([error, error], Heddle.settle([1, 2], limit: 1) { flunk }.map { |task| task.error.class })
          assert_raises(Heddle::NoneSucceeded) { Heddle.any(-> { flunk }, -> { flunk }) }
          assert_raises(error) { Heddle.race(-> { flunk }) }
          assert_raises(error) { Heddle.map([1, 2]) { flunk } }
          assert_raises(error) { Heddle.scope { Heddle.spawn { flunk } } }
        end
      end
    end
  end

  private

  def with_hook(hook)
    registered = Heddle.on_spawn(&hook)
    yield
  ensure
    registered.remove
  end
end
