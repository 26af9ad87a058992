# frozen_string_literal: true

require_relative "test_helper"

# `require "heddle"` loads what every program needs. The rest is loaded when a program first uses it.
class LoadingTest < HeddleTest
  LATER = %i[Channel Pipeline Run].freeze
  # Ruby 3.3 and 3.4 load nothing later in a Ractor. What worked there before stays at hand.
  LATER_WHERE_RACTORS_CAN = %i[Limiter RateLimiter Pool FiberPool].freeze

  def test_parts_are_loaded_when_they_are_first_used
    said = assert_script(<<~RUBY, heddle: false)
      require "heddle"
      p Heddle.constants.select { |name| Heddle.autoload?(name) }.sort
      Heddle.run do
        channel = Heddle::Channel.new(1) << 1
        pool = Heddle::Pool.new(size: 1) { "a connection" }
        p [Heddle.select(channel).last, Heddle.pipeline([2]).map(&:itself).to_a, Heddle.start { 3 }.value,
           pool.with(&:size), Heddle::FiberPool.new(1).spawn { 4 }.value, Heddle::Limiter.new(1).acquire { 5 },
           Heddle.race(-> { 6 }),
           Heddle::RateLimiter.new(1, per: 1).acquire { 7 }, Heddle.detach { 8 }.value, Heddle.retry { 9 },
           Heddle.command("true").success?]
        scope = Heddle.scope { |one| Thread.new { one.spawn { 10 } }.value.value }
        p scope, Heddle.constants.any? { |name| Heddle.autoload?(name) }
      end
    RUBY
    later = Heddle::RubyFeatures.at_least?("4.0") ? LATER + LATER_WHERE_RACTORS_CAN : LATER

    assert_equal(<<~TEXT, said)
      #{later.sort}
      [1, [2], 3, 12, 4, 5, 6, 7, 8, 9, true]
      10
      false
    TEXT
  end
end
