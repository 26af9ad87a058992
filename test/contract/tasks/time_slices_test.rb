# frozen_string_literal: true

require "test_helper"
require "timeout"

# What holds when tasks that compute are stopped in the middle of their code.
contract "TimeSlices" do
  def slices(time_slice: 0.001, &) = Heddle.run(backend:, time_slice:, &)

  # Computes until the block is true. Fails after a minute.
  def compute_until
    ends = clock + 60
    until yield
      fib(8)
      flunk("nobody else has run") if clock > ends
    end
    true
  end

  def compute(seconds)
    ends = clock + seconds
    compute_until { clock > ends }
  end

  def fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Runs tasks that compute beside one that ticks, until each of them has had this number of turns.
  #
  # @return [Array<Integer, :tick>] whose turns they were before the tasks ended
  def turns(count, rounds:)
    turns = []
    note = ->(who) { Heddle.without_time_slices { turns.last == who || (turns << who) } }
    wanted = (2 * count * rounds) + 10
    enough = -> { turns.size > wanted }
    slices(time_slice: 0.003) do
      Heddle.spawn { sleep(0.001) && note.call(:tick) until enough.call }
      count.times { |number| Heddle.spawn { compute_until { note.call(number).nil? || enough.call } } }
    end
    turns.first(wanted)
  end

  # Computes in each of these tasks until a task that only waits has ended.
  def beside_ticks(count = 4, ticks: 30)
    done = false
    slices do
      Heddle.spawn { ticks.times { sleep(0.001) } && done = true }
      Array.new(count) { |index| Heddle.spawn { yield(-> { done }, index) } }.map(&:value)
    end
  end

  def test_a_waiting_task_runs_beside_tasks_that_compute
    assert_equal([true] * 4, beside_ticks { |done| compute_until(&done) })
  end

  def test_tasks_that_compute_take_turns
    counts = Array.new(5, 0)
    slices do
      5.times do |index|
        Heddle.spawn { compute_until { (counts[index] += 1) > 50 && counts.all? { |count| count > 50 } } }
      end
    end

    assert_operator(counts.min, :>, 50)
  end

  # However many tasks compute, a task that waits comes after the slice of one of them; and each of them has its turn.
  [1, 4, 30].each do |count|
    define_method("test_the_order_of_turns_with_#{count}_that_compute") do
      turns = turns(count, rounds: 4)
      begun = turns.index(count - 1) # they begin in this order, before any tick that comes later
      gaps = turns.drop(begun).slice_when { |_, turn| turn == :tick }.map(&:size)[1...-1]
      counts = (turns - [:tick]).tally

      assert_operator(gaps.size, :>, 2)
      assert_operator(gaps.max, :<=, 3, "a tick, and the slices until the next one")
      assert_equal([*0...count], counts.keys.sort)
      # (On a busy machine a slice may be over before the task has noted its turn.)
      assert_operator(counts.values.min * 2, :>=, counts.values.max, "who computes, and how often")
    end
  end

  def test_the_block_of_the_run_has_slices_too
    slices do
      done = false
      Heddle.spawn { 10.times { sleep(0.001) } && done = true }

      assert(compute_until { done })
    end
  end

  def test_without_a_time_slice_nobody_runs_between_two_waits
    Heddle.run(backend:, time_slice: false) do
      ran = false
      Heddle.spawn { sleep(0.001) && ran = true }
      compute(0.05)

      refute(ran)
    end
  end

  def test_enumerators_give_all_their_values
    results = beside_ticks do |done, index|
      values = Enumerator.new { |list| 1.step { |number| list << (number * index) } }
      wrong = 0
      expected = 0
      compute_until { (wrong += 1 if values.next != (expected += index)) || done.call }
      wrong
    end

    assert_equal([0] * 4, results)
  end

  def test_enumerators_of_methods_in_ruby
    each = Class.new { def each = (1..).each { |number| yield number } }
    results = beside_ticks do |done|
      values = each.new.to_enum
      expected = 0
      wrong = 0
      compute_until { (wrong += 1 if values.next != (expected += 1)) || done.call }
      wrong
    end

    assert_equal([0] * 4, results)
  end

  def test_locks_exclude
    lock = Mutex.new
    inside = 0
    most = 0
    beside_ticks do |done|
      compute_until do
        lock.synchronize do
          most = [most, inside += 1].max
          fib(10)
          inside -= 1
        end
        done.call
      end
    end

    assert_equal(1, most)
  end

  def test_queues_keep_their_order
    queue = Thread::SizedQueue.new(3)
    received = []
    slices do
      Heddle.spawn { 300.times { |number| queue << number << fib(12) } && queue.close }
      Heddle.spawn { (received << queue.pop) && fib(12) until queue.closed? && queue.empty? }
    end

    assert_equal((0...300).to_a, received.compact.each_slice(2).map(&:first))
  end

  def test_blocks_that_c_calls
    results = beside_ticks do |done|
      right = true
      compute_until do
        right &&= [3, 1, 2].sort_by { |number| fib(5) && -number } == [3, 2, 1]
        right &&= "a-b".gsub(/[ab]/) { |found| fib(5) && found.upcase } == "A-B"
        right &&= [1, 2, 3].each_slice(2).map { |pair| fib(5) && pair.sum } == [3, 3]
        right &&= { a: 1 }.to_h { |key, value| [fib(5) && key, value + 1] } == { a: 2 }
        right &&= [1, 2].inject { |sum, number| fib(5) && (sum + number) } == 3
        done.call
      end
      right
    end

    assert_equal([true] * 4, results)
  end

  def test_jumps_and_exceptions
    results = beside_ticks do |done, index|
      wrong = 0
      cleaned = 0
      rounds = 0
      compute_until do
        rounds += 1
        value = catch(:found) { 5.times { |number| fib(6) && number == 3 && throw(:found, [index, number]) } }
        wrong += 1 unless value == [index, 3]
        begin
          begin
            fib(6)
            raise(ArgumentError, "of #{index}")
          ensure
            fib(8)
            cleaned += 1
          end
        rescue ArgumentError => e
          fib(6)
          wrong += 1 unless e.message == "of #{index}" && $!.equal?(e)
        end
        wrong += 1 unless $!.nil?
        done.call
      end
      [wrong, cleaned - rounds]
    end

    assert_equal([[0, 0]] * 4, results)
  end

  def test_each_task_has_its_own_last_match
    needs_patch(:match_apart)
    wrong = 0
    slices do
      done = false
      Heddle.spawn { 30.times { sleep(0.001) } && done = true }
      4.times do |index|
        Heddle.spawn do
          until done
            "item #{index}" =~ /(\d)/
            fib(12)
            wrong += 1 unless $1 == index.to_s
          end
        end
      end
    end

    assert_equal(0, wrong)
  end

  def test_sockets_beside_tasks_that_compute
    slices do
      done = false
      server = TCPServer.new("127.0.0.1", 0)
      echo = Heddle.spawn do
        socket = server.accept
        while (line = socket.gets)
          socket << line
        end
        socket.close
      end
      3.times { Heddle.spawn { compute_until { done } } }
      client = TCPSocket.new("127.0.0.1", server.addr[1])
      20.times { |number| client.puts(number) || assert_equal("#{number}\n", client.gets) }
      client.close
      echo.value
      done = true
    ensure
      server&.close
    end
  end

  # Also where it calls methods in C, which are on top of the stack then.
  def test_code_that_is_exempt_is_not_stopped_within
    folder = File.realpath(tempdir)
    file = File.join(folder, "exempt.rb")
    File.write(file, <<~RUBY)
      EXEMPT_WORK = lambda do |order, wakes, list|
        order << :begun
        wakes << true
        ends = Process.clock_gettime(1) + 0.1
        nil until list.dup.push(1).sort.include?(2) || Process.clock_gettime(1) > ends
        order << :done
      end
    RUBY
    load(file)
    Heddle.exempt_from_time_slices(folder)
    order = []
    slices do
      wakes = Thread::Queue.new
      other = Heddle.spawn { wakes.pop && (order << :other) }
      EXEMPT_WORK.call(order, wakes, [1] * 100)
      other.wait
    end

    assert_equal(%i[begun done other], order)
  ensure
    Object.send(:remove_const, :EXEMPT_WORK)
  end

  def test_a_cancel_is_raised_once_at_the_next_wait
    log = []
    slices do
      task = Heddle.spawn do
        compute_until { log.include?(:cancelled) }
        log << :computed
        sleep
      rescue Heddle::Cancelled
        log << :raised
        sleep(0.001)
        log << :cleaned
      end
      sleep(0.001)
      task.cancel
      log << :cancelled
      task.wait
    end

    assert_equal(%i[cancelled computed raised cleaned], log)
  end

  def test_timeouts_end_what_computes_once
    results = beside_ticks(3, ticks: 200) do |done|
      raised = 0
      begin
        Heddle.timeout(0.02) { compute_until(&done) }
      rescue Heddle::TimeoutError
        raised += 1
      end
      begin
        Timeout.timeout(0.02) { compute_until(&done) }
      rescue Timeout::Error
        raised += 1
      end
      fib(15)
      sleep(0.001)
      raised
    end

    assert_equal([2, 2, 2], results)
  end

  def test_a_deadline_beside_others_that_compute
    slices do
      done = false
      2.times { Heddle.spawn { compute_until { done } } }

      assert_nil(Heddle.move_on_after(0.02) { sleep })
      assert_nil(Heddle.move_on_after(0.02) { compute(60) })
      done = true
    end
  end

  def test_nested_runs_and_scopes
    slices do
      done = false
      Heddle.spawn { 10.times { sleep(0.001) } && done = true }
      value = Heddle.run(time_slice: 0.001) { Heddle.scope { |scope| scope.spawn { compute_until { done } }.value } }

      assert(value)
      error = assert_raises(ArgumentError) { Heddle.run(time_slice: 0.5) { nil } }
      assert_match(/\Atime_slice: must be 0.001, as in the run around/, error.message)
    end
  end

  def test_wrong_lengths
    [0, 0.0001, -1, 11, "1", Float::NAN].each do |wrong|
      error = assert_raises(ArgumentError, wrong.inspect) { Heddle.run(time_slice: wrong) { nil } }
      assert_match(/\Atime_slice: must be from 0.001 to 10 seconds, not /, error.message)
    end
  end

  def test_without_time_slices
    assert_predicate(Heddle, :time_slices?)

    slices do
      ran = 0
      task = Heddle.spawn { loop { sleep(0.001) && ran += 1 } }
      seen = Heddle.without_time_slices { ran.tap { compute(0.03) } == ran }

      assert(seen, "another task has run in the block")
      before = ran

      assert(compute_until { ran > before })
      assert_raises(ArgumentError) { Heddle.without_time_slices }
      task.cancel
    end
  end

  def test_what_holds_the_thread_or_the_fiber_holds_the_slice
    slices do
      ran = 0
      task = Heddle.spawn { loop { sleep(0.001) && ran += 1 } }
      never = ->(&work) { Thread.handle_interrupt(Object => :never, &work) }
      blocking = ->(&work) { Fiber.blocking { work.call } }
      plain = ->(&work) { Fiber.new(blocking: true, &work).resume }

      [never, blocking, plain].each do |held|
        assert(held.call { ran.tap { compute(0.03) } == ran })
      end
      task.cancel
    end
  end

  def test_fibers_that_a_task_resumes
    results = beside_ticks do |done|
      fiber = Fiber.new do |value|
        loop { value = Fiber.yield([fib(10), value]) }
      end
      sent = 0
      wrong = 0
      compute_until { (wrong += 1 if fiber.resume(sent += 1) != [55, sent]) || done.call }
      wrong
    end

    assert_equal([0] * 4, results)
  end

  def test_an_exception_for_the_thread_is_raised_once
    raised = 0
    slices do
      thread = Thread.current
      done = false
      Heddle.spawn { compute_until { done } }
      helper = nil
      begin
        helper = Thread.new { sleep(0.01) && thread.raise(IOError, "sent") }
        compute_until { done }
      rescue IOError
        raised += 1
      ensure
        done = true
      end
      helper.join
    rescue IOError
      raised += 1
    end
  rescue IOError
    raised += 1
  ensure
    assert_equal(1, raised)
  end

  def test_fiber_raise_and_kill_wait_for_the_next_wait
    log = []
    slices do
      first = Heddle.spawn do
        compute_until { log.include?(:sent) }
        log << :still_there
        sleep
      rescue ArgumentError => e
        log << e.message
      end
      second = Heddle.spawn do
        compute_until { log.include?(:sent) }
        sleep
      ensure
        log << :killed
      end
      sleep(0.002)
      first.fiber.raise(ArgumentError, "for the fiber")
      second.fiber.kill
      log << :sent
      first.wait
      second.wait
    end

    assert_equal([:sent, "for the fiber", :killed, :still_there].sort_by(&:to_s), log.sort_by(&:to_s))
    assert_operator(log.index(:still_there), :<, log.index("for the fiber"))
  end

  def test_forks_of_tasks_and_in_tasks
    slices do
      done = false
      2.times { Heddle.spawn { compute_until { done } } }
      sleep(0.002)
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        fib(15)
        value = Heddle.run(time_slice: 0.001) do
          ended = false
          Heddle.spawn { sleep(0.005) && ended = true }
          compute_until { ended }
        end
        writer.write(value.inspect)
        exit!(true)
      end
      writer.close

      assert_equal("true", reader.read)
      Process.wait(pid)
      done = true
    ensure
      reader&.close
    end
  end

  def test_threads_beside_it
    thread = Thread.new { compute(0.1) }
    threads = Array.new(2) do
      Thread.new { slices { Array.new(2) { Heddle.spawn { compute(0.05) } }.map(&:value) } }
    end

    assert_equal([[true, true]] * 2, threads.map(&:value))
    thread.join
  end

  def test_methods_in_c_that_only_compute
    numbers = Array.new(50_000) { |number| (number * 7919) % 50_021 }
    sorted = numbers.sort
    results = beside_ticks(3, ticks: 5) { |done| compute_until { numbers.sort == sorted && done.call } }

    assert_equal([true] * 3, results)
  end

  def test_gc_stress
    results = beside_ticks(2, ticks: 3) do |done, index|
      kept = "kept #{index}"
      compute_until do
        GC.stress = true
        copy = kept.dup
        GC.stress = false
        done.call && copy == kept
      end
    ensure
      GC.stress = false
    end

    assert_equal([true, true], results)
  end

  def test_compaction
    results = beside_ticks(2, ticks: 5) do |done, index|
      kept = Array.new(10) { |number| "#{index}-#{number}" }
      compute_until do
        copy = kept.map(&:dup)
        GC.compact if index.zero?
        fib(20)
        done.call && copy == kept
      end
    end

    assert_equal([true, true], results)
  end

  # As often as there is time for, all objects move that can, while the tasks have stopped in the middle of anything.
  def test_objects_move_while_tasks_are_stopped
    skip("this Ruby cannot move objects") unless GC.respond_to?(:verify_compaction_references)

    wrong = []
    slices do
      done = false
      Heddle.spawn do
        5.times { GC.verify_compaction_references(toward: :empty) && sleep(0.003) }
        done = true
      end
      moved.each { |name, work| Heddle.spawn { compute_until { (wrong << name unless work.call) || done } } }
    end

    assert_empty(wrong)
  end

  # Work whose parts hold references that only the stack of a fiber, or Ruby itself, knows.
  def moved
    numbers = Enumerator.new { |list| 1.step { |number| list << "n#{number}" } }
    expected = 0
    fiber = Fiber.new { |value| loop { value = Fiber.yield("#{value} #{fib(8)}") } }
    queue = Thread::Queue.new
    {
      enumerator: -> { numbers.next == "n#{expected += 1}" },
      fiber: -> { fiber.resume("fiber") == "fiber 21" },
      queue: -> { (queue << "item #{fib(8)}") && queue.pop == "item 21" },
      blocks: -> { %w[b a].sort_by { |text| fib(7) && text.upcase }.map(&:to_sym) == %i[a b] },
      exceptions: -> { exception_of { fib(8) && raise(ArgumentError, "text #{fib(8)}") }.message == "text 21" },
      strings: -> { "a-b".gsub(/[ab]/) { |found| fib(7) && found.upcase } == "A-B" },
      hashes: -> { { "a" => "b" }.to_h { |key, value| [value, key + fib(7).to_s] } == { "b" => "a13" } }
    }
  end

  def exception_of
    yield
  rescue ArgumentError => e
    e
  end

  def test_files_that_two_tasks_load_at_once
    folder = File.realpath(tempdir)
    body = "ends = Process.clock_gettime(1) + 0.03\nnil until Process.clock_gettime(1) > ends\n"
    File.write(File.join(folder, "sliced_by_name.rb"), "module SlicedByName\n#{body}VALUE = 1\nend\n")
    File.write(File.join(folder, "sliced_by_file.rb"), "module SlicedByFile; end\n#{body}SlicedByFile::VALUE = 2\n")
    Object.autoload(:SlicedByName, File.join(folder, "sliced_by_name.rb"))
    named, loaded = slices do
      [Array.new(3) { Heddle.spawn { SlicedByName::VALUE } },
       Array.new(3) { Heddle.spawn { [require(File.join(folder, "sliced_by_file.rb")), SlicedByFile::VALUE] } }]
        .map { |tasks| tasks.map(&:value) }
    end

    assert_equal([1, 1, 1], named)
    assert_equal([[false, 2], [false, 2], [true, 2]], loaded.sort_by(&:to_s))
  ensure
    %i[SlicedByName SlicedByFile].each { |name| Object.send(:remove_const, name) if Object.const_defined?(name) }
    $LOADED_FEATURES.reject! { |feature| feature.start_with?("#{folder}/") }
  end

  def test_the_watching_thread_sleeps_while_no_task_runs
    slices do
      compute(0.01)
      sleep(0.05)
      before = switches
      sleep(0.5)

      assert_operator(switches - before, :<, 500) # it would look 1000 times
    end
  end

  # How often the threads of this process have gone to sleep.
  def switches
    Dir.glob("/proc/self/task/*/status").sum { |path| File.read(path)[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i }
  end
end
