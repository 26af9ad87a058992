# frozen_string_literal: true

require_relative "test_helper"

# Heddle in a Ractor that is not the main one: Ruby lets it see no constant that could be changed.
class RactorsTest < HeddleTest
  def test_all_constants_are_shareable
    said = assert_script(<<~RUBY, heddle: false)
      $VERBOSE = nil # a method is redefined
      class Module
        def private_constant(*) = nil
      end
      require "heddle"

      def check(mod, seen)
        mod.constants(false).each do |name|
          value = mod.const_get(name, false)
          if !value.is_a?(Module) then puts "\#{mod}::\#{name}" unless Ractor.shareable?(value)
          elsif seen.add?(value) && value.inspect.start_with?("Heddle") then check(value, seen)
          end
        end
      end
      check(Heddle, Set.new)
    RUBY

    assert_equal("", said)
  end

  def test_what_tasks_do_there
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-rsocket"])
      class Ractor
        alias value take unless method_defined?(:value)
      end
      ractor = Ractor.new do
        pool = Heddle::Pool.new(size: 1) { "a connection" }
        hook = Heddle.on_spawn { ->(work) { work.call } }
        done = Heddle.run { [Heddle.spawn { pool.with(&:itself) }.value, Heddle.map(%w[1 2], &:to_i)] }
        hook.remove
        error = begin
          Heddle.run { Heddle.spawn(name: "one") { break } && sleep }
        rescue LocalJumpError => e
          [e.backtrace.grep(/task "one"/).size, e.reason]
        end
        Heddle.run do
          one, other = UNIXSocket.pair
          tasks = Array.new(2) { Heddle.spawn { one.readpartial(1) } }
          2.times { other.write("x") && sleep(0.001) }
          [*done, *error, *tasks.map(&:value)]
        end
      end
      p ractor.value
    RUBY

    assert_equal(%(["a connection", [1, 2], 1, :break, "x", "x"]\n), outcome.out, outcome.err)
    assert_match(/where .* waits for data already.*^What helps: give each task/m, outcome.err)
  end

  def test_detached_tasks_belong_to_the_main_ractor
    said = assert_script(<<~RUBY, options: ["-W:no-experimental"])
      ractor = Ractor.new do
        Heddle.drain
        Heddle.detach { :never }
      rescue Heddle::Error => e
        e.message
      end
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY

    assert_equal("only the main Ractor has detached tasks\n", said)
  end
end
