# frozen_string_literal: true

require "stringio"
require "weakref"

require_relative "../../test_helper"

# Heddle::Channel: items from senders to receivers, in tasks and threads.
contract "Channel" do
  heddle_only "Heddle::Channel"

  def channel(...) = Heddle::Channel.new(...)

  # A task that is spawned runs until it waits, but its turn may be over before.
  def until_waiting(items, count = 1)
    sleep(0.001) until items.inspect.include?("#{count} waiting")
  end

  def test_a_push_returns_when_its_item_is_taken
    log = []
    hand = channel
    run do
      sender = Heddle.spawn { 2.times { |i| (hand << i) && (log << [:pushed, i]) } }
      until_waiting(hand)

      assert_empty(log)
      refute_predicate(sender, :finished?)
      assert_equal([0, true, 0], [hand.size, hand.empty?, hand.capacity])
      2.times { |i| assert_equal(i, hand.pop) }
      sender.wait
    end

    assert_equal([[:pushed, 0], [:pushed, 1]], log)
  end

  def test_a_push_waits_for_a_place
    log = []
    buffer = channel(2)
    run do
      Heddle.spawn { 4.times { |i| (buffer << i) && (log << i) } }
      until_waiting(buffer)

      assert_equal([[0, 1], 2], [log, buffer.size])
      assert_equal(0, buffer.pop)
      until_waiting(buffer)

      assert_equal([[0, 1, 2], 2], [log, buffer.size])
      assert_equal([1, 2, 3], Array.new(3) { buffer.pop })
    end
  end

  def test_items_keep_their_order_and_receivers_theirs
    [0, 3].each do |capacity|
      taken = []
      run do
        items = channel(capacity)
        receivers = Array.new(5) { |i| Heddle.spawn { taken << [i, items.pop] }.tap { until_waiting(items, i + 1) } }
        5.times { |i| items << i }
        receivers.each(&:wait)
      end

      assert_equal(Array.new(5) { |i| [i, i] }, taken.sort)
    end
  end

  # It was woken for an item that another one took before it ran.
  def test_a_receiver_that_was_woken_in_vain_keeps_its_place
    taken = []
    run do
      items = channel(5)
      2.times { |i| Heddle.spawn { taken << [i, items.pop] }.then { until_waiting(items, i + 1) } }
      items << :first
      taken << [:latecomer, items.pop]
      sleep(0.01)
      items << :second
      sleep(0.01)
      items << :third
    end

    assert_equal([%i[latecomer first], [0, :second], [1, :third]], taken)
  end

  def test_time_limits
    run do
      assert_nil(channel.pop(timeout: 0.01))
      assert_nil(channel.pop(timeout: 0))
      hand = channel

      assert_nil(hand.push(1, timeout: 0.01))
      assert_nil(hand.push(1, timeout: 0))
      assert_nil(hand.pop(timeout: 0), "an item whose time is over is not in it")
      Heddle.spawn { hand.push(2, timeout: 20) }
      until_waiting(hand)

      assert_equal(2, hand.pop(timeout: -1))
      Heddle.spawn { hand.pop }

      assert_same(hand, hand.push(3, timeout: 20))
    end
  end

  def test_the_end
    run do
      items = channel(2)
      items << 1 << nil
      late = Heddle.spawn(isolated: true) { items.push(3) }
      until_waiting(items)

      assert_same(items, items.close)
      assert_equal([true, false], [items.closed?, items.ended?])
      assert_raises(Heddle::Channel::ClosedError) { late.value }
      assert_raises(Heddle::Channel::ClosedError) { items << 4 }
      assert_equal([1, nil], items.to_a, "what it has accepted is received, also a nil")
      assert_nil(items.pop)
      assert_predicate(items, :ended?)
    end
  end

  def test_a_close_wakes_those_who_wait
    run do
      items = channel
      receivers = Array.new(3) { Heddle.spawn { items.pop } }
      loops = Heddle.spawn { items.each { flunk } && :ended }
      until_waiting(items, 4)
      items.close

      assert_equal([nil, nil, nil], receivers.map(&:value))
      assert_same(:ended, loops.value)
    end
  end

  def test_an_error_comes_after_the_remaining_items
    error = IOError.new("the line is down")
    items = channel(5)
    items << 1 << 2
    items.close(error)
    items.close # has no effect
    run do
      taken = []

      assert_same(error, assert_raises(IOError) { items.each { |item| taken << item } })
      assert_equal([1, 2], taken)
      assert_same(error, assert_raises(IOError) { items.pop })
      assert_same(error, assert_raises(Heddle::Channel::ClosedError) { items << 3 }.cause)
    end
  end

  def test_a_feed_ends_with_its_tasks
    items = channel(1)
    taken = run do
      Heddle.spawn do
        items.feed { |to| 3.times { |i| Heddle.spawn { sleep(0.001 * i) && (to << i) } } && (to << :first) }
      end
      items.to_a
    end

    assert_equal([:first, 0, 1, 2], taken)
    assert_predicate(items, :closed?)
    assert_raises(Heddle::Channel::ClosedError) { items.feed { flunk } }
  end

  def test_the_last_of_several_feeds_closes_it
    items = channel
    first = Thread::Queue.new
    taken = run do
      Heddle.spawn { items.feed { (items << 1) && first.pop } }
      Heddle.spawn { items.feed { items << 2 } }
      got = [items.pop, items.pop]
      sleep(0.001)

      refute_predicate(items, :closed?)
      first.close
      got + items.to_a
    end

    assert_equal([1, 2], taken)
  end

  def test_a_feed_that_fails_or_is_cancelled_is_no_regular_end
    items = channel(1)
    run do
      failed = Heddle.spawn(isolated: true) { items.feed { (items << 1) && raise(IOError, "down") } }

      assert_equal(1, items.pop)
      assert_same(failed.error, assert_raises(IOError) { items.pop })
      items = channel(1)
      task = Heddle.spawn { items.feed { (items << 2) && sleep } }
      task.cancel.wait

      assert_equal(2, items.pop)
      assert_match(/has ended early/, assert_raises(Heddle::Channel::ClosedError) { items.pop }.message)
      items = channel
      items.feed { break }

      assert_nil(items.pop)
    end
  end

  def test_a_cancelled_push_takes_its_item_back
    run do
      hand = channel
      senders = Array.new(3) { |i| Heddle.spawn { hand << i }.tap { until_waiting(hand, i + 1) } }
      senders[1].cancel.wait

      assert_equal([0, 2], [hand.pop, hand.pop])
      assert_nil(hand.pop(timeout: 0))
    end
  end

  # The receiver and the cancel come to the sender at the same time: it has handed its item over, or it has it back.
  def test_a_push_is_taken_or_cancelled
    [true, false].each do |cancelled_first|
      log = []
      taken = nil
      run do
        hand = channel
        sender = Heddle.spawn do
          hand << :item
          log << :handed_over
          sleep
        ensure
          log << :cancelled
        end
        until_waiting(hand)
        steps = [-> { sender.cancel }, -> { taken = hand.pop(timeout: 0) }]
        (cancelled_first ? steps : steps.reverse).each(&:call)
        sender.wait
      end

      assert_equal(taken ? %i[handed_over cancelled] : [:cancelled], log)
    end
  end

  # The push has a timeout around it this time.
  def test_a_push_is_taken_or_its_time_is_over
    hand = channel
    run do
      log = []
      sender = Heddle.spawn do
        Heddle.timeout(0.01) { (hand << 1) && (log << :handed_over) }
      rescue Heddle::TimeoutError
        log << :time_is_over
      end
      seconds = now
      nil while now < seconds + 0.02 # computes: the time is over when the item is taken
      taken = hand.pop(timeout: 0)
      sender.wait

      assert_equal(taken ? [:handed_over] : [:time_is_over], log.first(1))
    end
  end

  # The item and the cancel come to the receiver at the same time: the next one gets the item.
  def test_a_cancelled_pop_leaves_the_item
    [true, false].product([0, 1]) do |cancelled_first, capacity|
      run do
        items = channel(capacity)
        receivers = Array.new(2) { |i| Heddle.spawn { items.pop }.tap { until_waiting(items, i + 1) } }
        steps = [-> { receivers[0].cancel }, -> { Heddle.spawn { items << :item } }]
        (cancelled_first ? steps : steps.reverse).each(&:call)

        assert_same(:item, receivers[1].value)
        assert_predicate(receivers[0].wait, :cancelled?)
      end
    end
  end

  def test_a_break_loses_no_item
    run do
      items = channel(3)
      items << 1 << 2 << 3
      items.each { |item| break if item }

      assert_equal(2, items.first)
      items.close

      assert_equal([3], items.to_a)
    end
  end

  def test_an_enumerator_keeps_what_it_does_not_take
    items = channel(3)
    items << 1 << 2 << 3

    assert_equal([[1, 0], [2, 1]], items.each.with_index.first(2))
    assert_equal(3, items.pop)
  end

  def test_between_threads_and_runs
    items = channel(2)
    results = channel
    threads = Array.new(2) { |i| Thread.new { 50.times { |n| items << ((i * 50) + n) } } }
    receivers = Array.new(2) do
      Thread.new { Heddle.run(backend:) { Heddle.each(items, limit: 3) { |item| sleep(0) && (results << item) } } }
    end
    closer = Thread.new { threads.each(&:join) && items.close && receivers.each(&:join) && results.close }

    assert_equal((0...100).to_a, run { results.to_a }.sort)
    [closer, *threads, *receivers].each(&:join)
  end

  # Senders and receivers in tasks and threads, with cancels in between: each item arrives exactly once.
  def test_no_item_is_lost_or_doubled
    [0, 1, 3].each do |capacity|
      items = channel(capacity)
      random = Random.new(capacity)
      sent = Thread::Queue.new
      taken = Thread::Queue.new
      thread = Thread.new { 100.times { |n| (items << n) && (sent << n) } }
      run do
        receivers = Array.new(3) { Heddle.spawn(background: true) { items.each { |item| taken << item } } }
        senders = Array.new(200) do |i|
          Heddle.spawn { (items << (1000 + i)) && (sent << (1000 + i)) && sleep(0) }
        end
        300.times do
          senders.sample(random:).cancel
          receivers.map! { |one| random.rand(4).zero? ? restarted(one, items, taken) : one }
          sleep(0)
        end
        senders.each(&:wait)
        sleep(0.001) while thread.alive? || items.size.positive?
        items.close
        receivers.each(&:wait)
      end
      sent = Array.new(sent.size) { sent.pop }.sort

      assert_equal(sent, Array.new(taken.size) { taken.pop }.sort)
      assert_operator(sent.size, :>=, 100)
    end
  end

  def restarted(receiver, items, taken)
    receiver.cancel.wait
    Heddle.spawn(background: true) { items.each { |item| taken << item } }
  end

  def test_those_who_never_wait_take_turns
    run do
      items = channel(1)
      ended = false
      Heddle.spawn { sleep(0) && ended = true }
      (items << 1) && items.pop until ended

      polled = channel
      Heddle.spawn { sleep(0.001) && (polled << :item) }
      nil until (item = polled.pop(timeout: 0))

      assert_same(:item, item)
    end
  end

  def test_in_the_child_of_a_fork
    items = channel(2)
    output, = capture_child do
      run do
        items << 1 << 2
        Heddle.spawn { items << 3 }
        waits = channel
        Heddle.spawn { waits.pop }
        [items, waits].each { |one| until_waiting(one) }
        pid = fork do
          left = [items.pop, items.pop, items.pop(timeout: 0)]
          answer = Heddle.run { Heddle.spawn { waits << :here } && waits.pop }
          puts([left, answer].inspect)
        end
        Process.wait(pid)
        waits << 4

        assert_equal([1, 2, 3], [items.pop, items.pop, items.pop], "the parent's are its own")
      end
    end

    assert_equal("[[1, 2, nil], :here]\n", output)
  end

  def capture_child
    reader, writer = pipe
    before = $stdout.dup
    $stdout.reopen(writer)
    yield
    $stdout.flush
    writer.close
    $stdout.reopen(before)
    reader.read
  ensure
    $stdout.reopen(before)
    before.close
  end

  def test_reports_name_it
    run do
      items = channel(1, name: "orders")
      Heddle.spawn(name: "sender") { 2.times { |i| items << i } }
      hand = channel(name: -> { "hand" })
      task = Heddle.spawn(name: "receiver") { hand.pop }
      [items, hand].each { |one| until_waiting(one) }
      dump = StringIO.new
      Heddle.dump(dump)

      assert_match(/"sender": waits for a place in #<Heddle::Channel orders: 1 of 1, 1 waiting to push>/, dump.string)
      assert_match(/"receiver": waits for an item of #<Heddle::Channel hand: 0 of 0, 1 waiting to pop>/, dump.string)
      task.cancel
      2.times { items.pop }
      items.close

      assert_equal("#<Heddle::Channel orders: 0 of 1, closed>", items.inspect)
    end
  end

  def test_those_who_have_left_leave_nothing_behind
    items = channel
    run do
      20.times do
        Heddle.spawn { items.pop }.cancel.wait
        Heddle.spawn { items << 1 }.cancel.wait
        items.pop(timeout: 0.0001)
        items.push(1, timeout: 0.0001)
      end
    end

    assert_equal("#<Heddle::Channel 0 of 0>", items.inspect)
  end

  def test_an_abandoned_one_is_collected
    references = Array.new(10) { run { WeakRef.new(channel(1) << 1) } }
    wait_until("the collection of one") { GC.start || references.any? { |one| !one.weakref_alive? } }
  end

  def test_arguments
    assert_match(/\Acapacity: /, assert_raises(ArgumentError) { channel(-1) }.message)
    assert_match(/\Acapacity: /, assert_raises(ArgumentError) { channel(1.5) }.message)
    assert_match(/\Aname: /, assert_raises(ArgumentError) { channel(name: 7) }.message)
    assert_match(/\Atimeout: /, assert_raises(ArgumentError) { channel.pop(timeout: "1") }.message)
    assert_match(/\Atimeout: /, assert_raises(ArgumentError) { channel.push(1, timeout: :x) }.message)
    assert_match(/\Aerror: /, assert_raises(ArgumentError) { channel.close("down") }.message)
    assert_match(/#feed needs a block/, assert_raises(ArgumentError) { channel.feed }.message)
  end
end
