# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"

# dry-effects: its handlers are fibers, and an effect belongs to the fiber that performs it.
contract "DryEffects" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "dry-effects", file: "dry/effects"

  # Counts, in a state that a handler keeps.
  def counter
    Class.new do
      include Dry::Effects::Handler.State(:count)
      include Dry::Effects.State(:count)

      def from(start, &) = with_count(start) { instance_exec(&) }
    end.new
  end

  def test_tasks_with_a_handler_each
    counts = run do
      Heddle.map(1..5) do |number|
        counter.from(number * 10) do
          3.times { (self.count += 1) && sleep(0.001) }
          count
        end
      end
    end

    assert_equal([1, 2, 3, 4, 5].map { |number| [(number * 10) + 3] * 2 }, counts)
  end

  # A task is another fiber, as a thread is: it gets the value, not the handler.
  def test_a_task_inside_of_a_handler
    inside = counter
    seen = run do
      inside.from(1) do
        value = count
        task = Heddle.spawn(isolated: true) { inside.count }.wait
        [Heddle.spawn { value + 1 }.value, task.error.class.name, count]
      end
    end

    assert_equal([1, [2, "Dry::Effects::Errors::MissingStateError", 1]], seen)
  end

  def test_a_run_inside_of_a_handler
    on = backend
    seen = counter.from(1) do
      Heddle.run(backend: on) do
        sleep(0.001)
        self.count += 1
        Heddle.map([1, 2], &:succ)
      end
    end

    assert_equal([2, [2, 3]], seen)
  end
end
