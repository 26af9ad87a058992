# frozen_string_literal: true

require "stringio"

require_relative "../../test_helper"

# Heddle.pipeline: stages, each with its limit.
contract "Pipeline" do
  heddle_only "Heddle.pipeline"

  def test_results_keep_the_order_of_the_items
    pipeline = Heddle.pipeline(1..20).map(limit: 4) { |x| sleep(0.001 * (x % 3)) && (x * 2) }
      .select(limit: 2) { |x| sleep(0) && x % 4 == 0 }.flat_map { |x| [x, nil, [x]] }
    expected = (1..10).flat_map { |x| [x * 4, nil, [x * 4]] }

    assert_equal(expected, run { pipeline.to_a })
    assert_equal(expected, pipeline.to_a, "once more, without a run around it")
    assert_equal([[1, 2], [3, 4]], Heddle.pipeline({ 1 => 2, 3 => 4 }).map { |pair| pair }.to_a)
  end

  def test_all_stages_work_at_the_same_time
    gates = Array.new(3) { Thread::Queue.new }
    run do
      work = Heddle.spawn do
        Heddle.pipeline(1..3).map { |x| x < 3 ? x : gates[0].pop && x }.map { |x| x < 2 ? x : gates[1].pop && x }
          .each(limit: 1) { |_x| gates[2].pop }
      end
      sleep(0.001) until gates.all? { |gate| gate.num_waiting == 1 }
      gates.each(&:close)
      work.cancel
    end
  end

  def test_a_stage_has_no_more_items_than_its_limit
    [1, 2, 5].each do |limit|
      read = passed = most = 0
      source = Enumerator.new { |to| 1.step { |x| (most = [most, (read += 1) - passed].max) && (to << x) } }
      run do
        gate = Thread::Queue.new
        pipeline = Heddle.pipeline(source).map(limit:) { |x| x }.map { |x| (passed += 1) && gate.pop && x }
        work = Heddle.spawn { pipeline.to_a }
        sleep(0.001) until gate.num_waiting == 1
        3.times { (gate << true) && sleep(0.001) }
        sleep(0.001) until gate.num_waiting == 1 && read >= 4 + limit
        sleep(0.001)

        assert_equal([4, 4 + limit], [passed, read])
        work.cancel
      end

      assert_equal(limit, most)
    end
  end

  def test_sources_that_wait
    reader, writer = pipe
    queue = Thread::Queue.new
    channel = Heddle::Channel.new
    run do
      lines = Heddle.spawn { Heddle.pipeline(reader.each_line).map(limit: 3, &:chomp).to_a }
      items = Heddle.spawn { Heddle.pipeline(queue).map(limit: 3) { |x| x }.each(limit: 2) { |x| channel << x } }
      first = []
      got = Heddle.spawn { Heddle.pipeline(channel).map(limit: 3) { |x| x + 1 }.each { |x| first << x } }
      writer.puts("one", "two")
      queue << 1
      sleep(0.001) until first == [2] # a result goes on though the source waits
      queue << 2
      queue.close
      items.wait
      channel.close
      writer.close

      assert_equal(%w[one two], lines.value)
      assert_predicate(got.wait, :finished?)
      assert_equal([2, 3], first.sort)
    end
  end

  def test_the_first_error_ends_all_stages
    error = IOError.new("no answer")
    ended = []
    pipeline = Heddle.pipeline(1..).map(limit: 3) do |x|
      x == 9 ? raise(error) : x
    end
    pipeline = pipeline.map(limit: 2) do |x|
      x < 5 ? x : sleep
    ensure
      ended << x if x >= 5
    end

    assert_same(error, assert_raises(IOError) { run { pipeline.each(limit: 2) { nil } } })
    assert_same(error, assert_raises(IOError) { pipeline.to_a })
    assert_equal([5, 5, 6, 6], ended.sort)
    assert_empty(error.suppressed)
  end

  def test_errors_of_the_source_and_of_the_last_block
    source = Enumerator.new { |to| (to << 1 << 2) && raise(IOError, "no more") }
    seen = []

    assert_raises(IOError) { run { Heddle.pipeline(source).map { |x| x }.each { |x| seen << x } } }
    assert_operator(seen.size, :<=, 2)
    [nil, 2].each do |limit|
      assert_raises(ZeroDivisionError) { run { Heddle.pipeline(1..).map { |x| x }.each(limit:) { 1 / 0 } } }
    end
  end

  def test_break_leaves_it
    cleaned = 0
    pipeline = Heddle.pipeline(1..).map(limit: 3) do |x|
      x < 5 ? x : sleep
    ensure
      cleaned += 1
    end
    run do
      pipeline.each { |x| break if x == 2 }

      assert_operator(cleaned, :>=, 2)
      assert_equal(1, Fiber.scheduler.tasks.size, "only the main block")
    end
  end

  def test_an_enumerator_keeps_its_place
    assert_equal([1, 2, 3], run { Heddle.pipeline(1..).map(limit: 3) { |x| x }.each.first(3) })
    results = Heddle.pipeline(1..3).map { |x| x }.each

    assert_equal([1, 2], run { [results.next, results.next] })
  end

  def test_a_cancel_in_the_middle_leaves_what_is_not_taken
    run do
      items = Heddle::Channel.new(30)
      30.times { |i| items << i }
      seen = []
      gate = Thread::Queue.new
      work = Heddle.spawn { Heddle.pipeline(items).map(limit: 4) { |x| x }.each { |x| (seen << x) && gate.pop } }
      sleep(0.001) until gate.num_waiting == 1 && items.size == 25
      work.cancel.wait

      assert_equal([[0], 25], [seen, items.size], "one is in the block, four in the stage")
      assert_equal(5, items.pop)
    end
  end

  def test_reports_name_the_stages
    run do
      gate = Thread::Queue.new
      work = Heddle.spawn { Heddle.pipeline(1..).map { gate.pop }.map { 1 }.to_a }
      sleep(0.001) until gate.num_waiting == 1
      dump = StringIO.new
      Heddle.dump(dump)
      work.cancel

      assert_match(/"stage 1 of a pipeline": waits for a place in stage 1 of a pipeline/, dump.string)
      assert_match(/"stage 2 of a pipeline": waits for a result of stage 1|"stage 2 .* waits for #<Heddle::Task/,
                   dump.string)
    end
    assert_equal("#<Heddle::Pipeline of 1 stages>", Heddle.pipeline([]).map { nil }.inspect)
  end

  def test_arguments
    pipeline = Heddle.pipeline([])

    assert_match(/\Asource: /, assert_raises(ArgumentError) { Heddle.pipeline(7) }.message)
    %i[map flat_map select].each do |name|
      assert_match(/##{name} needs a block/, assert_raises(ArgumentError) { pipeline.public_send(name) }.message)
      assert_match(/\Alimit: /, assert_raises(ArgumentError) { pipeline.public_send(name, limit: 0) { nil } }.message)
    end
    [[], 0, false].each do |limit|
      assert_match(/\Alimit: /, assert_raises(ArgumentError) { pipeline.each(limit:) { nil } }.message)
      assert_match(/\Alimit: /, assert_raises(ArgumentError) { pipeline.each(limit:) }.message)
    end
    assert_raises(NoMethodError) { Heddle::Pipeline.new([]) }
  end
end
