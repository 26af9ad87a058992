# frozen_string_literal: true

require_relative "../../test_helper"
require "socket"

# Heddle::IdleSet: many sockets, and one task that waits for them.
contract "IdleSet" do
  heddle_only "it is Heddle's own"

  def setup
    super
    @set = Heddle::IdleSet.new
    @opened = []
  end

  def teardown
    @set.close
    @opened.each(&:close)
    super
  end

  # The ends that are in the set, and the other ends.
  def pairs(number) = Array.new(number) { UNIXSocket.pair.tap { |pair| @opened.concat(pair) } }.transpose

  def test_a_socket_is_reported_once_when_there_is_something_to_read
    run do
      ends, others = pairs(3)
      ends.each { |socket| @set.add(socket) }

      assert_equal([3, false, []], [@set.size, @set.empty?, @set.wait(0)])
      others[1].write("x")

      assert_equal([ends[1]], @set.wait)
      assert_equal([2, []], [@set.size, @set.wait(0)])
      others[0].close
      others[2].close

      assert_equal(ends.values_at(0, 2).sort_by(&:fileno), @set.wait(20).sort_by(&:fileno))
      assert_empty(@set)
    end
  end

  def test_a_task_waits_while_others_run_and_sees_what_is_added
    run do
      (first, second), others = pairs(2)
      order = []
      waiter = Heddle.spawn { 2.times { order.concat(@set.wait) } }
      order << :added
      [first, second].each { |socket| @set.add(socket) }
      others.first.write("x")
      sleep(0.001) until order.include?(first)
      others.last.write("x")
      waiter.value

      assert_equal([:added, first, second], order)
    end
  end

  def test_the_time_is_over
    run do
      (socket,), = pairs(1)
      @set.add(socket)

      assert_empty(@set.wait(0.01))
      assert_equal(1, @set.size)
    end
  end

  def test_more_sockets_than_one_call_of_the_kernel_returns
    run do
      ends, others = pairs(300)
      ends.each { |socket| @set.add(socket) }
      others.each { |other| other.write("x") }
      found = []
      found.concat(@set.wait(20)) while found.size < 300

      assert_equal(ends.sort_by(&:fileno), found.sort_by(&:fileno))
      assert_empty(@set.wait(0))
    end
  end

  def test_a_socket_leaves_the_set_and_comes_back
    run do
      (first, second), others = pairs(2)
      @set.add(first)

      assert_nil(@set.delete(second))
      assert_same(first, @set.delete(first))
      assert_nil(@set.delete(first))
      others.first.write("x")

      assert_empty(@set.wait(0))
      @set.add(first)

      assert_equal([first], @set.wait(20))
    end
  end

  # A closed socket leaves the kernel's set by itself, and the next one may have its descriptor.
  def test_a_socket_that_was_closed_makes_room_for_another_with_its_descriptor
    run do
      (first,), = pairs(1)
      @set.add(first)
      number = first.fileno
      first.close
      (second,), (other,) = pairs(1)

      assert_equal(number, second.fileno)
      @set.add(second)
      other.write("x")

      assert_equal([second], @set.wait(20))
      assert_nil(@set.delete(first))
    end
  end

  def test_a_closed_socket_can_be_deleted
    run do
      (first,), = pairs(1)
      @set.add(first)
      first.close

      assert_same(first, @set.delete(first))
      assert_empty(@set)
    end
  end

  # The kernel does not know of these bytes.
  def test_bytes_in_the_buffer_count
    run do
      (first, second, third), others = pairs(3)
      waiter = Heddle.spawn { @set.wait }
      others.each { |other| other.write("a line\nand more") }
      [first, second, third].each(&:gets)
      @set.add(first)

      assert_equal([first], waiter.value)
      assert_equal("and", first.read(3))
      [second, third].each { |socket| @set.add(socket) }
      @set.delete(second)

      assert_equal([[third], []], [@set.wait(20), @set.wait(0)])
      @set.add(second)

      assert_equal([second], @set.wait(20))
      assert_empty(@set)
    end
  end

  def test_objects_that_stand_for_a_socket
    run do
      (socket,), (other,) = pairs(1)
      holder = Struct.new(:to_io).new(socket)
      @set.add(holder)
      other.write("x")

      assert_equal([holder], @set.wait(20))
    end
  end

  def test_a_close_ends_the_wait
    run do
      (socket,), = pairs(1)
      @set.add(socket)
      waiter = Heddle.spawn { assert_raises(IOError) { @set.wait } }
      @set.close
      waiter.value

      assert_equal([true, true, 0], [@set.closed?, @set.empty?, @set.size])
      refute_predicate(socket, :closed?)
      assert_nil(@set.delete(socket))
      [-> { @set.wait(0) }, -> { @set.wait }, -> { @set.add(socket) }].each { |call| assert_raises(IOError, &call) }
    end
  end

  def test_what_it_refuses
    run do
      (socket,), = pairs(1)
      @set.add(socket)
      messages = File.open(__FILE__) do |file|
        [socket, file, 5].map { |io| assert_raises(ArgumentError) { @set.add(io) }.message }
      end

      assert_match(/\Aio: is in the set: #<UNIXSocket/, messages[0])
      assert_match(/\Aio: cannot be watched: #<File/, messages[1])
      assert_match(/\Aio: must have the method to_io/, messages[2])
      assert_equal(1, @set.size)
    end
  end

  once def test_without_a_scheduler
    (socket,), (other,) = pairs(1)
    @set.add(socket)
    writer = Thread.new { other.write("x") }

    assert_equal([socket], @set.wait(20))
    assert_equal("#<Heddle::IdleSet 0 sockets>", @set.inspect)
  ensure
    writer&.join
  end
end
