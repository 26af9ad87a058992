# frozen_string_literal: true

require_relative "../test_helper"
require "timeout"

# Timeout.timeout in a fiber.
contract "TimeoutPatch" do
  def test_what_it_gives_and_raises
    reactor do
      assert_equal(2, Timeout.timeout(2) { |seconds| seconds })
      assert_equal("execution expired", assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } }.message)
      assert_equal("text", assert_raises(IOError) { Timeout.timeout(0.01, IOError, "text") { sleep } }.message)
      assert_equal([1, 2], [Timeout.timeout(nil) { 1 }, Timeout.timeout(0) { 2 }])
      assert_raises(ArgumentError) { Timeout.timeout(-1) { nil } } if ruby_at_least?("4.0")
    end
  end

  def test_what_is_not_a_number_is_never_over
    reactor { assert_equal(:value, Timeout.timeout(Float::NAN) { sleep(0.01) && :value }) }
  end

  def test_by_include
    includer = Class.new { include Timeout }.new

    reactor do
      assert_raises(Timeout::Error) { includer.instance_eval { timeout(0.01) { sleep } } }
    end
  end

  def test_it_makes_no_objects
    heddle_only("Ruby makes some")
    reactor do
      call = -> { Timeout.timeout(5) { nil } }
      10.times { call.call }
      before = GC.stat(:total_allocated_objects)
      100.times { call.call }

      assert_operator(GC.stat(:total_allocated_objects) - before, :<, 100)
    end
  end
end

# Which copy of it is patched.
class TimeoutGemTest < HeddleTest
  # Ruby's `require` takes the newest one that is installed, in place of that which comes with Ruby.
  def test_a_newer_gem_is_taken
    home = tempdir
    lib = File.join(home, "gems/timeout-99.0.0/lib")
    FileUtils.mkdir_p([lib, File.join(home, "specifications")])
    File.write(File.join(lib, "timeout.rb"), <<~RUBY)
      load File.join(RbConfig::CONFIG["rubylibdir"], "timeout.rb")
      Timeout::FROM_THE_GEM = true
    RUBY
    File.write(File.join(home, "specifications/timeout-99.0.0.gemspec"), <<~RUBY)
      Gem::Specification.new("timeout", "99.0.0") { |spec| spec.authors = spec.summary = "a test" }
    RUBY

    env = { "GEM_HOME" => home, "GEM_PATH" => home }

    assert_equal("true\n", assert_script("puts(defined?(Timeout::FROM_THE_GEM) ? true : false)", gems: true, env:))
  end
end
