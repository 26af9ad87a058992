# frozen_string_literal: true

require_relative "../../test_helper"

# $~ and what is taken from it, $_ and $? are those of the task, as they are those of a thread, also where many tasks
# run the same block.
contract "OwnMatches" do
  heddle_only "of tasks"

  def setup
    super
    needs_patch(:match_apart)
  end

  texts = %w[a1 b2 c3]
  numbers = %w[1 2 3]

  # The number in the text, found after others have looked for theirs.
  number = lambda do |text|
    text =~ /(\d)/
    sleep(0.002)
    $1
  end

  ways = {
    "spawn" => -> { texts.map { |text| Heddle.spawn { number.call(text) } }.map(&:value) },
    "spawn_with_arguments" => -> { texts.map { |text| Heddle.spawn(text, &number) }.map(&:value) },
    "a_scope" => -> { Heddle.scope { |scope| texts.map { |text| scope.spawn(text, &number) }.map(&:value) } },
    "map" => -> { Heddle.map(texts, &number) },
    "each" => lambda do
      found = []
      Heddle.each(texts) { |text| (text =~ /(\d)/) && sleep(0.002) && found.push($1) }
      found
    end,
    "settle" => -> { Heddle.settle(texts, &number).map(&:value) },
    "a_pool_of_fibers" => lambda do
      pool = Heddle::FiberPool.new(2)
      texts.map { |text| pool.spawn(text, &number) }.map(&:value)
    end,
    "any" => lambda do
      found = []
      searches = texts.map { |text| -> { (text =~ /(\d)/) && sleep(0.002) && found.push($1) && raise("next") } }
      begin
        Heddle.any(*searches)
      rescue StandardError
        found
      end
    end,
    "a_spawn_hook" => lambda do
      hook = Heddle.on_spawn { ->(work) { work.call } }
      texts.map { |text| Heddle.spawn(text, &number) }.map(&:value)
    ensure
      hook.remove
    end,
    "a_block_in_gsub" => -> { Heddle.map(texts) { |text| text.gsub(/\d/) { sleep(0.002) && $& } }.map { |s| s[1] } },
    "schedule" => lambda do
      found = Thread::Queue.new
      texts.each { |text| Fiber.schedule { (text =~ /(\d)/) && sleep(0.002) && found.push($1) } }
      Array.new(3) { found.pop }
    end
  }

  ways.each do |name, way|
    define_method("test_matches_of_#{name}") do
      assert_equal(numbers, Heddle.run(&way).sort)
    end
  end

  def test_lines
    reactor do
      lines = Array.new(2) do |i|
        reader, writer = pipe
        writer.puts("line #{i}")
        Heddle.spawn { reader.gets && sleep(0.002) && $_ }
      end

      assert_equal(["line 0\n", "line 1\n"], lines.map(&:value))
    end
  end

  def test_a_task_begins_with_none_and_leaves_those_of_others
    "outer" =~ /out/
    seen = Heddle.run { [$&, Heddle.spawn { [$&, "inner" =~ /inn/, $&] }.value, $&] }

    assert_equal(["out", [nil, 0, "inn"], "out"], seen)
  end

  def test_a_block_that_is_no_ruby
    assert_equal(%w[A B], Heddle.map(%w[a b], &:upcase))
    assert_equal([1, 2], Heddle.map(%w[1 2], &method(:Integer)))
  end

  def test_the_status_of_the_last_child
    reactor do
      codes = [3, 0, 4].map do |code|
        go do
          system("sleep 0.0#{code}; exit #{code}")
          sleep(0.03)
          $?.exitstatus
        end
      end

      assert_equal([3, 0, 4], codes.map(&:value))
    end
  end

  def test_garbage_is_collected_meanwhile
    found = reactor do
      jobs = Array.new(300) { |i| Heddle.spawn { ("number #{i}" =~ /(\d+)/) && sleep(0) && $1.to_i } }
      GC.start
      GC.compact if GC.respond_to?(:compact)
      jobs.map(&:value)
    end

    assert_equal((0...300).to_a, found)
  end
end
