# frozen_string_literal: true

require_relative "../../test_helper"

# Every exception that ends a task is raised, or attached to what is raised (suppressed), or reported (Heddle.on_error):
# by one of these doors, and whichever way the block of its scope is left.
contract "Doors" do
  heddle_only "errors of tasks"

  # The error with which the tasks of these programs fail. It has to_a, as an error with several parts may have.
  define_singleton_method(:fault) do
    @fault ||= Class.new(StandardError) do
      include Enumerable

      def each(&) = %w[one two].each(&)
    end
  end

  def fault = self.class.fault

  def grace = 20

  # Each ends in its own way while a task of its scope fails, now or when it is cancelled.
  def left(way)
    case way
    when :ends then :value
    when :raises then raise(KeyError, "of the block")
    when :throws then throw(:out, :thrown)
    when :exits then exit(3)
    when :is_killed then Fiber.current.kill
    end
  end

  failing = {
    "at_once" => -> { raise("of the task") },
    "when_cancelled" => lambda do
      sleep
    ensure
      raise("of the task")
    end
  }
  define_method(:failing) { failing }

  %i[raises throws exits is_killed].product(failing.to_a).each do |way, (name, task)|
    define_method("test_a_block_that_#{way}_and_a_task_that_fails_#{name}") do
      found = doors do
        Heddle.spawn(isolated: true) do
          Heddle.scope do |scope|
            scope.spawn(&task)
            catch(:out) { Heddle.scope { |inner| inner.spawn(&task) && left(way) } }
          end
        end
      end

      assert_equal(2, found.count { |error| error.message == "of the task" }, found.inspect)
    end
  end

  def test_return_and_break
    found = doors do
      ways = [-> { Heddle.scope { |scope| scope.spawn { raise "of the task" } && (return 1) } },
              -> { Heddle.scope { |scope| scope.spawn { raise "of the task" } && (break 1) } }]
      errors = ways.map { |way| assert_raises(RuntimeError) { way.call } }

      assert_equal(["of the task"] * 2, errors.map(&:message))
    end

    assert_empty(found)
  end

  # What other tasks have failed with takes the place of the throw.
  def test_a_task_that_throws
    error = assert_raises(RuntimeError) do
      catch(:out) do
        run do
          Heddle.spawn(&failing["when_cancelled"])
          Heddle.spawn { throw(:out) }
          sleep
        end
      end
    end

    assert_equal("of the task", error.message)
  end

  # Both tasks have been woken when the first one throws.
  def test_two_tasks_throw_to_the_same_place
    found = catch(:out) do
      Heddle.run(backend:) do
        ready = Queue.new
        2.times { |n| Heddle.spawn { ready.pop && throw(:out, n) } }
        sleep(0.001) while ready.num_waiting < 2
        2.times { ready << true }
      end
    end

    assert_equal(0, found)
  end

  def test_a_timeout_knows_what_has_failed_meanwhile
    [Timeout, Heddle].each do |timeout|
      error = assert_raises(Timeout::Error) do
        run { timeout.timeout(0.01) { Heddle.scope { Heddle.spawn(&failing["when_cancelled"]) && sleep } } }
      end

      assert_equal(["of the task"], error.suppressed.map(&:message))
    end
  end

  def test_an_exception_for_the_thread_knows_why_the_scope_was_ending
    needs_patch(:callers_fiber) # else Heddle.run raises it
    error = run do
      owner = Thread.current
      cleaning = Thread::Queue.new
      Heddle.scope do
        Heddle.spawn do
          sleep
        ensure
          Thread.new do
            sleep(0.001) until cleaning.num_waiting == 1 # Ruby raises it in the task while that computes
            owner.raise(ArgumentError)
          end
          cleaning.pop
        end
        raise("of the block")
      end
    rescue ArgumentError => e
      cleaning.close
      e
    end

    assert_equal(["of the block"], error.suppressed.map(&:message))
  end

  # -- a cancel comes while errors are reported -----------------------------------------------------------------------

  # The failure is frozen, or has taken the place of a cancel: then the others cannot be attached, and are reported.
  {
    "of_an_isolated_task" => lambda do |_scope|
      Heddle.spawn(isolated: true) { raise("of the task") }
      raise("of the block")
    end,
    "that_cannot_be_attached" => lambda do |_scope|
      Heddle.spawn(&failing["when_cancelled"])
      raise("of the block".then { |text| RuntimeError.new(text).freeze })
    end,
    "of_a_resource" => lambda do |_scope|
      Heddle::Pool.new(size: 1, close: ->(_) { raise("of the task") }) { 1 }.with { 1 }
      raise("of the block".then { |text| RuntimeError.new(text).freeze })
    end
  }.each do |name, block|
    define_method("test_a_failure_#{name}_is_reported_and_the_owner_cancelled") do
      told = []
      Heddle.on_error { |error, _| (told << error.message) && @owner.cancel }
      error = Heddle.run(backend: backend) do
        @owner = Heddle.spawn(isolated: true) { sleep(0) && Heddle.scope(&block) }
        @owner.error || @owner.wait.error
      end

      assert_equal([["of the task"], "of the block"], [told, error.message])
    ensure
      Heddle.on_error(nil)
    end
  end

  def test_the_cancel_is_raised_at_the_next_wait
    went_on = false
    Heddle.on_error { @owner.cancel }
    ended = Heddle.run(backend: backend) do
      @owner = Heddle.spawn(isolated: true) do
        sleep(0)
        Heddle.report(KeyError.new)
        went_on = true
        sleep
      end
      @owner.wait.status
    end

    assert_equal([:cancelled, true], [ended, went_on])
  ensure
    Heddle.on_error(nil)
  end

  # -- nobody comes back to the scope ------------------------------------------------------------------------------

  def test_an_enumerator_that_nobody_asks_again
    ended = false
    found = doors do
      abandon do |scope|
        scope.spawn { raise "of the task" }
        scope.spawn do
          sleep
        ensure
          ended = true
        end
      end
    end

    assert_equal(["of the task"], found.map(&:message))
    assert(ended, "the scope does not end with the run")
  end

  # The block of the run has ended when a task of an abandoned scope leaves another one behind.
  def test_scopes_that_are_abandoned_at_the_end
    ended = false
    found = doors do
      queue = Thread::Queue.new
      late = lambda do |scope|
        scope.spawn(isolated: true) { raise("of the task") }
        scope.spawn do
          sleep
        ensure
          ended = true
        end
      end
      abandon { |scope| scope.spawn { queue.pop && abandon(&late) } }
      queue << true # the task goes on when the block has ended
    end

    assert_equal(["of the task"], found.map(&:message))
    assert(ended, "the scope does not end with the run")
  end

  def test_an_abandoned_scope_of_a_plain_fiber_without_failures
    queue = Thread::Queue.new
    run do
      Fiber.schedule { queue.pop && abandon { |scope| scope.spawn(isolated: true) { sleep(0) } } }
      queue << true # the fiber goes on when the block has ended
    end
  end

  # Only its endless tasks are left, after the block of the run.
  def test_an_abandoned_scope_does_not_keep_the_run
    ended = []
    [nil, 0.01].each do |pause|
      run do
        Fiber.schedule do
          sleep(pause) if pause
          abandon do |scope|
            scope.spawn do
              Heddle.scope { Heddle.spawn { sleep } }
            ensure
              ended << pause
            end
          end
        end
      end
    end

    assert_equal([nil, 0.01], ended)
  end

  # Its owner has the grace period to end after a failure. Nobody waits for one that never comes back.
  def test_an_abandoned_scope_with_a_failure_does_not_keep_the_run
    failing = ->(scope) { 2.times { |i| scope.spawn(isolated: i == 1) { raise "of the task" } } }
    within_a_task = ->(scope) { scope.spawn { Heddle.scope { |inner| failing.call(inner) && sleep } } }
    by_a_task = ->(scope) { scope.spawn { abandon(&failing) } }
    [failing, within_a_task, by_a_task].each do |work|
      started = now
      found = doors { abandon(&work) }

      assert_equal(["of the task"], found.map(&:message).uniq)
      assert_operator(now - started, :<, grace / 2)
    end
  end

  def test_a_scope_whose_enumerator_is_asked_again_is_not_abandoned
    values = []
    run do
      Fiber.schedule do
        tasks = Enumerator.new do |out|
          Heddle.scope do |scope|
            [scope.spawn { sleep(0.02) && :done }, scope.spawn { sleep }].each { |task| out << task }
          end
        end
        values << tasks.next.value # other fibers end meanwhile
        values << tasks.next.alive?
      end
      3.times { |i| Fiber.schedule { sleep(0.005 * i) } }
    end

    assert_equal([:done, true], values)
  end

  def test_an_isolated_task_that_fails_when_its_scope_has_ended
    needs_patch(:callers_fiber) # else Heddle.run raises it
    found = doors do
      owner = Thread.current
      cleaning = Thread::Queue.new
      begin
        Heddle.scope do
          Heddle.spawn(isolated: true) do
            sleep
          ensure
            Thread.new do
              sleep(0.001) until cleaning.num_waiting == 1
              owner.raise(ArgumentError)
            end
            cleaning.pop || raise("of the task")
          end
          break
        end
      rescue ArgumentError
        cleaning.close
      end
    end

    assert_equal(1, found.count { |error| error.message == "of the task" }, found.inspect)
  end

  def test_without_a_run
    found = doors(in_run: false) do
      scheduler = Heddle::Scheduler.new(backend: backend)
      Thread.new do
        Fiber.set_scheduler(scheduler)
        Fiber.schedule { abandon { |scope| scope.spawn { sleep(0.001) && raise("of the task") } } }
      end.join
    end

    assert_equal(["of the task"], found.map(&:message))
  end

  # The scheduler has no list of them. The number that the GC frees at once depends on what old stacks still say.
  def test_scopes_without_tasks_are_not_kept
    run do
      before = fibers
      100.times { abandon { true } }

      assert_empty(Fiber.scheduler.send(:scopes))
      assert_operator(fibers, :<, before + 100)
    end
  end

  # (The GC may find such a scope on a stack that was used before: Ruby 4.0 does.)
  def test_scopes_whose_tasks_have_ended_are_not_kept
    scopes = -> { Fiber.scheduler.send(:scopes) }
    run do
      before = scopes.call.size
      abandon do |scope|
        task = scope.spawn { sleep(0) }

        assert_includes(scopes.call, scope)
        task.wait
      end

      assert_equal(before, scopes.call.size)
    end
  end

  # An exception for the owner is raised when all has been reported.
  def test_a_cancel_while_failures_are_reported
    told = []
    ended = reporting(told) do
      Heddle.run(backend: backend) do
        @owner = Heddle.current_task
        3.times { |number| Heddle.spawn(isolated: true) { raise number.to_s } }
      end
    end

    assert_equal([%w[0 1 2], Heddle::Cancelled], [told, ended])
  end

  # @return [Class, nil] of what the block has raised
  def reporting(told)
    Heddle.on_error { |error, _| (told << error.message) && @owner.cancel }
    yield
    nil
  rescue Heddle::Cancelled => e
    e.class
  ensure
    Heddle.on_error(nil)
  end

  # -- random programs ---------------------------------------------------------------------------------------------

  # Tasks, scopes and enumerators that fail anywhere, are cancelled at any moment, and left in all ways.
  def test_random_programs
    seed = Integer(ENV.fetch("HEDDLE_SEED", Random.new_seed % 1_000_000))
    60.times do |i|
      @random = Random.new(seed + i)
      @raised = []
      found = doors { body(3) }.grep(fault)
      context = "HEDDLE_SEED=#{seed + i}"

      assert_empty(@raised - found, context)
      assert_equal(@doors.grep(fault).uniq(&:__id__).size, @doors.grep(fault).size, "two doors: #{context}")
    end
  end

  private

  # @return [Array<Exception>] what has left the block by any door
  def doors(in_run: true, &block)
    @doors = []
    reported = Thread::Queue.new
    Heddle.on_error { |error, _| reported << error }
    begin
      in_run ? Heddle.run(backend: backend, grace: grace, &block) : yield
    rescue Exception => e # also SystemExit
      raise if e.is_a?(Minitest::Assertion)

      @doors << e
    end
    @doors << reported.pop until reported.empty?
    @doors = @doors.flat_map { |error| with_suppressed(error) }
    @doors.flat_map { |error| with_causes(error) }.uniq(&:__id__)
  ensure
    Heddle.on_error(nil)
  end

  def with_suppressed(error)
    [error] + (error.is_a?(Heddle::TaskFailure) ? error.suppressed.flat_map { |other| with_suppressed(other) } : [])
  end

  # What an error in an ensure clause has taken the place of, and what that one has carried.
  def with_causes(error)
    error ? [error, *with_suppressed(error.cause).compact.flat_map { |other| with_causes(other) }] : []
  end

  def abandon
    Enumerator.new { |yielder| Heddle.scope { |scope| yield(scope) && (yielder << 1) } }.next
  end

  def fibers
    3.times { GC.start }
    ObjectSpace.each_object(Fiber).count
  end

  def fail_now
    @raised << fault.new("number #{@raised.size}")
    raise @raised.last
  end

  def pause = sleep(@random.rand(3) * 0.0005)

  def body(depth)
    @random.rand(1..4).times { step(depth) }
    fail_now if @random.rand(6).zero?
  end

  def step(depth)
    case depth.zero? ? 0 : @random.rand(7)
    when 0 then pause
    when 1, 2 then start(depth)
    when 3 then cleaning_up(depth)
    when 4 then in_a_scope(depth)
    when 5 then abandon { body(depth - 1) || true }
    when 6 then @random.rand(3).zero? ? Heddle.current_task&.cancel : pause
    end
  end

  def start(depth)
    kind = [{}, {}, { isolated: true }, { background: true }].sample(random: @random)
    task = Heddle.spawn(**kind) { body(depth - 1) }
    task.cancel if @random.rand(4).zero?
  end

  # (It does not wait while a failure is on its way: a cancel would take its place, as in plain Ruby.)
  def cleaning_up(depth)
    body(depth - 1)
  ensure
    pause unless $!.is_a?(fault)
    fail_now if @random.rand(4).zero?
  end

  def in_a_scope(depth)
    way = %i[ends raises throws returns].sample(random: @random)
    catch(:out) do
      lambda do
        Heddle.scope do
          body(depth - 1)
          return if way == :returns

          way == :raises ? fail_now : left(way)
        end
      end.call
    end
  end
end
