# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/cli/doctor"

# What the README and its companions say of versions is what the code says.
class FactsTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)

  def text(name) = File.read(File.join(ROOT, name)).split.join(" ")

  # Without the whole page in its message.
  def assert_says(name, words)
    says = text(name).include?(words)

    assert(says, "#{name} does not say: #{words}")
  end

  def test_the_oldest_ruby = assert_says("README.md", "Ruby #{Heddle::RubyFeatures::OLDEST} or newer")

  def test_the_kernels
    features = Heddle::CLI::Facts::KERNEL_FEATURES

    ["io_uring", "io_uring deferred work"].each do |name|
      assert_says("README.md", "| #{features.fetch(name).first} or newer | io_uring")
    end
  end

  def test_the_system_calls_of_io_uring
    sources = Dir.glob("ext/heddle/**/*.c", base: ROOT).map { |name| text(name) }.join
    used = sources.scan(/\bSYS_(io_uring_\w+)/).flatten.uniq.sort
    allowed = text("SECURITY.md")[/"names": \[(.*?)\]/, 1].scan(/\w+/).sort

    assert_equal(used, allowed)
    operations = sources.scan(/\.opcode = [^;,]*|->opcode = [^;]*/).flat_map { |line| line.scan(/IORING_OP_\w+/) }

    assert_equal(operations.uniq.sort, text("SECURITY.md").scan(/IORING_OP_\w+/).sort)
  end

  # The table of guides/design.md: functions, and the file or the folder in which they are.
  def test_the_way_of_a_read
    table = File.read(File.join(ROOT, "guides/design.md"))[/^## A read, step by step$(.*?)^## /m, 1]
    rows = table.scan(/^\| (`\w+`(?:, `\w+`)*) \| `([^`]+)` \|/)
    missing = rows.flat_map do |names, place|
      sources = Dir.glob("ext/heddle/#{place.end_with?("/") ? "#{place}*.c" : place}", base: ROOT).map do |name|
        text(name)
      end
      names.scan(/\w+/).reject { |name| sources.any? { |source| source.match?(/\w \*?#{name}\([^;{]*\) \{/) } }
    end

    assert_empty(missing)
    assert_operator(rows.size, :>, 10)
  end

  def test_what_changes_the_behaviour_from_outside
    policy = text("README.md")[/## Versions, Rubies and kernels(.*?)## /, 1]
    sources = Dir.glob("{lib,heddle-server/lib}/**/*.rb", base: ROOT).map { |name| text(name) }.join
    read = sources.scan(/(?:ENV\.fetch\(|ENV\[|SWITCH = )"(HEDDLE_\w+)"/).flatten.uniq

    assert_equal(read.sort, policy.scan(/HEDDLE_[A-Z_]+/).uniq.sort)
  end
end
