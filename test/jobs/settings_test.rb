# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/sidekiq/settings"

# What a program says to heddle/sidekiq.
class SidekiqSettingsTest < HeddleTest
  CAPSULE = Struct.new(:name)
  THREADED = "a capsule of this test"

  def test_keep_threads
    assert(Heddle::Sidekiq.tasks?(CAPSULE.new(THREADED)))
    assert_nil(Heddle::Sidekiq.keep_threads(THREADED, :"another one"))
    refute(Heddle::Sidekiq.tasks?(CAPSULE.new(THREADED)))
    refute(Heddle::Sidekiq.tasks?(CAPSULE.new("another one")))
    assert(Heddle::Sidekiq.tasks?(CAPSULE.new("default")))
  end

  def test_names_that_are_none
    error = assert_raises(ArgumentError) { Heddle::Sidekiq.keep_threads("one", nil) }

    assert_equal("capsules: nil is not the name of a capsule", error.message)
  end

  # What the program has set comes first, then the environment.
  def test_time_slice
    assert_equal(%w[0.005 0.05 false], %w[nil 0.05 false].map { |set| time_slice(set, nil) })
    assert_equal(%w[nil 0.05 false], %w[nil 0.05 false].map { |set| time_slice(set, "0.5") })
    assert_equal("nil", time_slice("nil", "0"))
    error = assert_raises(ArgumentError) { Heddle::Sidekiq.time_slice = 0 }

    assert_equal("time_slice: must be from 0.001 to 10 seconds, not 0", error.message)
  end

  def test_fetch_reliably
    skip("sidekiq is not installed") if Gem::Specification.find_all_by_name("sidekiq").empty?

    assert_script(<<~RUBY, gems: true, options: %w[-W0])
      require "sidekiq"
      require "heddle/sidekiq"
      config = Sidekiq::Config.new
      2.times { Heddle::Sidekiq.fetch_reliably(config) }
      events = config[:lifecycle_events].values_at(:startup, :exit).map(&:size)
      config[:fetch_class].superclass == Sidekiq::BasicFetch && events == [1, 1] or abort(events.inspect)

      config = Sidekiq::Config.new
      config[:fetch_class] = Class.new(Sidekiq::BasicFetch) { def self.to_s = "Other" }
      begin
        Heddle::Sidekiq.fetch_reliably(config)
      rescue ArgumentError => e
        e.message == "config: its fetch_class is Other" or abort(e.message)
      else
        abort("no error")
      end
    RUBY
  end

  private

  # @param set [String] by the program
  # @param environment [String, nil]
  # @return [String] the value that counts
  def time_slice(set, environment)
    assert_script(<<~RUBY, env: { "HEDDLE_TIME_SLICE" => environment }).chomp
      require "heddle/sidekiq/settings"
      Heddle::Sidekiq.time_slice = #{set}
      p Heddle::Sidekiq.time_slice
    RUBY
  end
end
