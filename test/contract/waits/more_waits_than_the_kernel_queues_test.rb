# frozen_string_literal: true

require_relative "../../test_helper"

# More operations at once than any queue of the kernel holds: none fails.
contract "FullQueue" do
  heddle_only "10,000 threads are too many here"

  # Hazard: "queue full" raised inside of the user's fiber.
  def test_ten_thousand_waits_on_few_descriptors
    reactor do
      pairs = Array.new(10) { pipe }
      jobs = Array.new(10_000) { |i| go { pairs[i % 10].first.wait_readable } }
      settle
      pairs.each { |_, writer| writer.write("x") }

      assert_equal([true], jobs.map { |job| !job.value.nil? }.uniq)
      jobs.clear # their blocks refer to it: one that the stack still names would keep the stacks of all
    end
  end

  def test_ten_thousand_timed_waits
    reactor do
      reader, = pipe
      jobs = Array.new(10_000) { go { reader.wait_readable(0.2) } }

      assert_equal([nil], jobs.map(&:value).uniq)
      jobs.clear
    end
  end

  def test_ten_thousand_transfers
    reactor do
      pairs = Array.new(100) { socket_pair }
      jobs = pairs.flat_map do |one, other|
        [go { 100.times { one.write("x") && one.readpartial(1) } },
         go { 100.times { other.write(other.readpartial(1)) } }]
      end
      jobs.each(&:value)
    end
  end

  def test_ten_thousand_cancelled_waits
    reactor do
      reader, writer = pipe
      jobs = Array.new(10_000) { go { reader.wait_readable } }
      settle
      jobs.each { |job| job.fiber.kill }
      settle

      assert(jobs.all?(&:finished?))
      writer.write("x")

      assert_equal("x", reader.readpartial(1))
      jobs.clear
    end
  end
end
