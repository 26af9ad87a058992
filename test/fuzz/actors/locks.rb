# frozen_string_literal: true

require_relative "../actor"

module Fuzz
  # Producers and consumers of one Queue or SizedQueue, tasks and threads: each item comes once, in its order.
  class Queues < Actor
    private

    def perform
      @queue = chance(0.5) ? Thread::Queue.new : Thread::SizedQueue.new(number(1..5))
      @per_producer = steps(60)
      producers = Array.new(number(1..4)) { |i| beside { produce(i) } }
      got = Array.new(number(1..4)) { [] }
      consumers = got.map { |items| beside { consume(items) } }
      finish_all(producers)
      @queue.close
      finish_all(consumers)
      check_items(got, producers.size)
    end

    def beside(&) = chance(0.7) ? go(&) : thread(&)

    def finish_all(workers)
      tasks, threads = workers.partition { |worker| worker.is_a?(Heddle::Task) }
      finish(*tasks)
      threads.each { |one| check(one.join(PATIENCE / @slow), "a thread hangs") }
    end

    def produce(producer)
      @per_producer.times do |i|
        pause if chance(0.3)
        item = [producer, i]
        if Fiber.scheduler && chance(0.3)
          next if raised_into(0.5) { @queue << item }.first == :done
        elsif @queue.is_a?(Thread::SizedQueue) && chance(0.3)
          next if @queue.push(item, timeout: moment)
        end
        @queue << item
      end
    end

    def consume(items)
      until @queue.closed? && @queue.empty?
        pause if chance(0.3)
        item = pop
        items << item if item
      end
    end

    def pop
      limit = chance(0.3) ? moment : nil
      return @queue.pop(timeout: limit) unless Fiber.scheduler

      raised_into(0.3) { @queue.pop(timeout: limit) }.last.then { |item| item if item.is_a?(Array) }
    end

    def check_items(got, producers)
      all = got.flatten(1)
      check(all.uniq.size == all.size, "an item came twice")
      check(all.size == producers * @per_producer) { "#{all.size} of #{producers * @per_producer} items came" }
      got.each do |items|
        check(items.group_by(&:first).values.all? { |of_one| of_one == of_one.sort }, "items came out of order")
      end
    end
  end

  # One lock, many who want it: never two inside, nobody is forgotten.
  class Locks < Actor
    private

    def perform
      @lock = pick(Thread::Mutex.new, Monitor.new)
      @inside = @entered = 0
      count = steps(30)
      workers = Array.new(number(2..6)) { chance(0.8) ? go { work(count) } : thread { work(count) } }
      finish(*workers.grep(Heddle::Task))
      workers.grep(Thread).each { |one| check(one.join(PATIENCE / @slow), "a thread hangs at the lock") }
      check(@lock.try_enter, "the lock is still held") if @lock.is_a?(Monitor)
      check(!@lock.locked?, "the lock is still held") if @lock.is_a?(Thread::Mutex)
      @lock.exit if @lock.is_a?(Monitor)
    end

    def work(count)
      count.times do
        if Fiber.scheduler && chance(0.3)
          raised_into(0.5) { enter }
        else
          enter
        end
        pause if chance(0.2)
      end
    end

    def enter
      @lock.synchronize do
        check((@inside += 1) == 1, "two are inside of the lock")
        pause
        @lock.synchronize { @entered += 1 } if @lock.is_a?(Monitor)
      ensure
        @inside -= 1
      end
    end
  end

  # A buffer of a few places, guarded by a lock and two condition variables.
  class Conditions < Actor
    private

    def perform
      @lock = Thread::Mutex.new
      @filled = Thread::ConditionVariable.new
      @emptied = Thread::ConditionVariable.new
      @buffer = []
      count = steps(60)
      got = []
      putting = Array.new(2) { |i| go("puts") { count.times { |n| put([i, n]) } } }
      taking = Array.new(2) { go("takes") { count.times { got << take } } }
      finish(*putting, *taking)
      check(got.sort == [0, 1].product((0...count).to_a), "items were lost or came twice")
    end

    def put(item)
      @lock.synchronize do
        @emptied.wait(@lock, chance(0.3) ? 0.01 : nil) while @buffer.size >= 2
        @buffer << item
        @filled.signal
      end
      pause if chance(0.3)
    end

    def take
      @lock.synchronize do
        @filled.wait(@lock, chance(0.3) ? 0.01 : nil) while @buffer.empty?
        @buffer.shift.tap { @emptied.signal }
      end
    end
  end
end
