# frozen_string_literal: true

require_relative "test_helper"

# `require "heddle"` loads all of the API at once. Ruby cannot load a file in a signal's handler, because `require`
# takes a lock, and Ruby 3.3 cannot do so in another Ractor.
class LoadingTest < HeddleTest
  FIRST_USES = <<~RUBY
    require "heddle"

    USES = lambda do
      [Heddle.retry { 1 }, Heddle.command("true").success?, Heddle.pipeline([2]).map(&:itself).to_a,
       Heddle.start { 3 }.value, Heddle.run { Heddle::FiberPool.new(1).spawn { 4 }.value }]
    end
  RUBY
  VALUES = "[1, true, [2], 3, 4]\n"

  def test_nothing_is_loaded_later
    assert_equal("[]\n", assert_script(<<~RUBY, heddle: false))
      require "heddle"
      p Heddle.constants.select { |name| Heddle.autoload?(name) }
    RUBY
  end

  def test_first_uses_in_a_signal_handler
    ["Heddle.run(&wait)", "wait.call"].each do |waiting|
      assert_equal(VALUES, assert_script(FIRST_USES + <<~RUBY, heddle: false))
        values = nil
        trap("USR1") { values = USES.call }
        wait = -> { Process.kill("USR1", $$) && sleep(0.01) until values }
        #{waiting}
        p values
      RUBY
    end
  end

  def test_first_uses_in_another_ractor
    assert_equal("[1, [2], 4]\n", assert_script(<<~RUBY, heddle: false))
      require "heddle"
      Warning[:experimental] = false
      ractor = Ractor.new do
        [Heddle.retry { 1 }, Heddle.pipeline([2]).map(&:itself).to_a,
         Heddle.run { Heddle::FiberPool.new(1).spawn { 4 }.value }]
      end
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
  end
end
