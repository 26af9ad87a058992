# frozen_string_literal: true

# bin/test: takes 20 s, 0.8 of a core

require_relative "../../test_helper"
require "support/growth"

# The failures of n tasks cost n times as much as one: where they are raised, attached, reported or dropped.
contract "FailureGrowth" do
  extend TestSupport::Growth

  heddle_only "errors of tasks"

  prelude = <<~RUBY
    Heddle.on_error { nil }

    def fail_when_cancelled
      sleep
    ensure
      raise "of the task"
    end

    # What the block raises comes from all tasks.
    def failing(*known)
      yield
      abort("no error")
    rescue *known => e
      parts = e.is_a?(Heddle::NoneSucceeded) ? e.errors : [e, *(e.suppressed if known == [IOError])]
      abort("\#{parts.size} errors of \#{COUNT}") unless parts.size >= COUNT || known == [KeyError]
    end
  RUBY

  programs = {
    of_a_scope: <<~RUBY,
      mark
      failing(IOError) do
        Heddle.scope do |scope|
          COUNT.times { scope.spawn { fail_when_cancelled } }
          sleep(0)
          raise IOError
        end
      end
    RUBY
    of_tasks_that_fail_by_themselves: <<~RUBY,
      mark
      failing(IOError) do
        Heddle.scope do |scope|
          queue = Thread::Queue.new
          COUNT.times { scope.spawn { queue.pop || raise("of the task") } }
          sleep(0)
          queue.close
          raise IOError
        end
      end
    RUBY
    of_isolated_tasks: <<~RUBY,
      mark
      Heddle.scope { |scope| COUNT.times { scope.spawn(isolated: true) { sleep(0) && raise("of the task") } } }
    RUBY
    of_settle: <<~RUBY,
      mark
      tasks = Heddle.settle(1..COUNT) { sleep(0) && raise("of the task") }
      abort("not all") unless tasks.count(&:error) == COUNT
    RUBY
    of_map: <<~RUBY,
      mark
      failing(IOError) do
        Heddle.map(0..COUNT) { |number| number < COUNT ? fail_when_cancelled : raise(IOError) }
      end
    RUBY
    of_race: <<~RUBY,
      mark
      failing(KeyError) do
        Heddle.race(*Array.new(COUNT) { -> { fail_when_cancelled } }, -> { sleep(0) && raise(KeyError) })
      end
    RUBY
    of_any: <<~RUBY
      mark
      failing(Heddle::NoneSucceeded) { Heddle.any(*Array.new(COUNT) { -> { sleep(0) && raise("of the task") } }) }
    RUBY
  }

  costs_grow_with_the_number(programs:, prelude:, few: 60, many: 480, room: 1.25, each_backend: false)
end
