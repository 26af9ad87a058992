# frozen_string_literal: true

require_relative "../../test_helper"

# Waits that end by their timeout, each after a moment, and a scheduler whose hooks return at once.
module AllocationCases
  WAITS = {
    "sleep" => ->(_reader) { sleep(0.00001) },
    "wait_readable" => ->(reader) { reader.wait_readable(0.00001) },
    "select" => ->(reader) { IO.select([reader], nil, nil, 0.00001) },
    "queue" => ->(_reader) { Thread::Queue.new.pop(timeout: 0.00001) }
  }.freeze

  class AtOnce
    def block(_blocker, _timeout = nil) = false
    def unblock(_blocker, _fiber) = nil
    def kernel_sleep(_duration = nil) = true
    def io_wait(_io, _events, _timeout) = false
    def io_select(*) = nil
    def fiber_interrupt(_fiber, _exception) = nil
    def close = nil
    def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
  end
end

# A wait makes no object and takes no memory of its own: all that is allocated is what Ruby makes before the hook.
contract "Allocation" do
  AllocationCases::WAITS.each do |name, wait|
    define_method("test_#{name}_makes_no_object_of_its_own") do
      heddle_only("compares two schedulers")
      reader, = pipe
      least = in_a_thread(AllocationCases::AtOnce.new) { objects { wait.call(reader) } }

      assert_below(least + 0.01) do
        in_a_thread(Heddle::Scheduler.new(backend: backend)) { objects { wait.call(reader) } }
      end
    end
  end

  def test_waits_leave_the_heap_of_the_process_alone
    heddle_only("its memory")
    reader, = pipe
    in_a_thread(Heddle::Scheduler.new(backend: backend)) do
      waiting = -> { 2000.times { waits_in_turn(reader) } }
      waiting.call
      assert_below(1_000_000, "bytes more for 8,000 waits") do
        before = resident
        waiting.call
        resident - before
      end
    end
  end

  private

  def waits_in_turn(reader) = AllocationCases::WAITS.each_value { |wait| wait.call(reader) }

  def resident = Integer(File.read("/proc/self/statm").split[1]) * 4096

  def in_a_thread(scheduler)
    Thread.new do
      value = nil
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { value = yield }
      Fiber.set_scheduler(nil)
      value
    end.value
  end

  # Per call, when everything has been called once.
  def objects(&wait)
    100.times(&wait)
    before = GC.stat(:total_allocated_objects)
    1000.times(&wait)
    (GC.stat(:total_allocated_objects) - before).fdiv(1000)
  end
end
