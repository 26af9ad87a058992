# frozen_string_literal: true

require_relative "../../test_helper"

# 5,000 fibers, each waiting on a descriptor of its own.
contract "ManyReaders" do
  heddle_only "5,000 threads are too many here"

  def test_five_thousand_readers
    need_descriptors(10_500)
    reactor do
      pipes = Array.new(5000) { pipe }
      jobs = pipes.map { |reader, _| go { reader.readpartial(10) } }
      settle

      assert(jobs.none?(&:finished?))
      pipes.each_with_index { |(_, writer), i| writer.write(i.to_s) }

      assert_equal((0...5000).map(&:to_s), jobs.map(&:value))
    end
  end

  def test_five_thousand_readers_with_a_timeout
    need_descriptors(10_500)
    reactor do
      pipes = Array.new(5000) { pipe }
      jobs = pipes.map { |reader, _| go { reader.wait_readable(0.3) } }

      assert_equal([nil], jobs.map(&:value).uniq)
      pipes.each { |_, writer| writer.write("x") }

      assert_equal(5000, pipes.count { |reader, _| reader.wait_readable(5) })
    end
  end

  # Hazard: hangs in two published schedulers.
  def test_two_thousand_pipes_are_closed_under_their_readers
    need_descriptors(4500)
    reactor do
      pipes = Array.new(2000) { pipe }
      jobs = pipes.map { |reader, _| go { reader.readpartial(10) } }
      settle
      pipes.each { |reader, _| reader.close }

      assert_equal([IOError], jobs.map { |job| job.failure.class }.uniq)
    end
  end
end
