# frozen_string_literal: true

require "pathname"
require "timeout"
require_relative "../../test_helper"

# A fiber that is cancelled or killed while it opens a file on a thread of the pool loses no descriptor: either nothing
# was opened, or the file is opened, and the fiber hears of it at its next wait.
contract "RaiseIntoOpen" do
  heddle_only "tasks"

  def setup
    super
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "file")
    File.write(@path, "as it was")
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
    super
  end

  def raise_into(rounds, how = :cancel, &block)
    rounds.times do
      task = Heddle.spawn(&block)
      sleep(rand * 0.0002)
      how == :cancel ? task.cancel : task.fiber&.kill # (an ended task has none)
      task.wait
    end
  end

  def assert_loses_nothing(how = :cancel, &block)
    reactor do
      raise_into(20, how, &block)
      before = descriptor_count
      GC.disable # what is collected is closed
      raise_into(400, how, &block)

      assert_equal(before, descriptor_count)
    ensure
      GC.enable
    end
  end

  { "open_to_write" => ->(path) { File.open(path, "w") { nil } },
    "open_and_write" => ->(path) { File.open(path, "w") { |file| file.write("x" * 100) } },
    "kernel_open" => ->(path) { __send__(:open, path, "a") { nil } },
    "write" => ->(path) { File.write(path, "x") },
    "binwrite_at_an_offset" => ->(path) { File.binwrite(path, "x", 5) },
    "sysopen" => ->(path) { IO.for_fd(IO.sysopen(path)).close },
    "a_folder" => ->(path) { Dir.open(File.dirname(path)).close } }.each do |name, operation|
    define_method("test_#{name}") do
      assert_loses_nothing { operation.call(@path) }
    end

    define_method("test_#{name}_by_one_that_is_killed") do
      assert_loses_nothing(:kill) { operation.call(@path) }
    end
  end

  # The operation works on memory of its caller, which must not end before it.
  def test_a_killed_fiber_stays_until_its_operation_has_ended
    events = []
    begun = Thread::Queue.new
    reactor do
      task = Heddle.spawn do
        Heddle.const_get(:PoolThread).run do
          begun << true
          Thread.handle_interrupt(Exception => :never) { sleep(0.03) && (events << :operated) }
        end
      ensure
        events << :left
      end
      begun.pop
      task.fiber.kill
      task.wait
    end

    assert_equal(%i[operated left], events)
  end

  # Ruby's buffer, which is written when the file is closed, goes out once.
  %i[cancel kill].each do |how|
    define_method("test_#{how}_does_not_write_twice") do
      reactor do
        sizes = Array.new(300) do
          File.write(@path, "")
          raise_into(1, how) { File.open(@path, "w") { |file| file.write("x" * 100) } }
          File.size(@path)
        end

        assert_empty(sizes.uniq - [0, 100])
      end
    end
  end

  # The block had no further wait, in which an exception could have been raised. Where the machine has stopped the task
  # meanwhile, it may be raised before File.open enters the block. Then the file is left to the GC, as in plain Ruby.
  # Ruby 3.3 opens inline here, as in plain Ruby, and loses the descriptor of an open that is interrupted: there is no
  # object that the GC could free.
  def test_a_timeout_does_not_strike_after_its_block
    if RUBY_VERSION < "3.4" && lost_by_ruby.positive?
      skip("Ruby loses descriptors without Heddle, too: #{lost_by_ruby} of 500")
    end
    struck = []
    reactor do
      go do
        300.times do
          Timeout.timeout(rand(0.00001..0.0004)) { File.open(@path, "w") { |file| file.write("x") } }
        rescue Timeout::Error
          nil
        ensure
          begin
            sleep(0.0001)
          rescue Timeout::Error => e
            struck << e
          end
        end
      end.value
    end
    3.times { GC.start }

    assert_empty(struck)
  end

  # How many descriptors a thread has lost in as many opens that Timeout interrupts.
  def lost_by_ruby
    @lost_by_ruby ||= Integer(run_ruby(<<~RUBY, heddle: false).out)
      require "timeout"
      before = Dir.children("/dev/fd").size
      Thread.new do
        500.times do
          Timeout.timeout(rand(0.00001..0.0004)) { File.open(#{@path.dump}, "w") { |file| file.write("x") } }
        rescue Timeout::Error
          nil
        end
      end.join
      3.times { GC.start }
      puts(Dir.children("/dev/fd").size - before)
    RUBY
  end

  # Though none of its operations fails.
  def test_it_ends
    skip("opens inline: it never waits") if RUBY_VERSION < "3.4"
    reactor do
      task = Heddle.spawn { loop { File.open(@path, "w") { nil } } }
      settle
      task.cancel

      assert(task.wait(60))
    end
  end

  def test_what_is_written
    reactor do
      assert_equal(5, File.write(@path, "first"))
      assert_equal(3, File.write(@path, "two", 5))
      assert_equal(2, File.binwrite(Pathname(@path), "\xff\n", 8))
      assert_equal("firsttwo\xff\n".b, File.binread(@path))
      assert_equal(1, File.write(@path, "!", mode: "a", perm: 0o600))
      assert_equal("firsttwo\xff\n!".b, File.binread(@path))
      assert_raises(Errno::ENOTDIR) { File.write("#{@path}/none", "x") }
      assert_raises(Errno::EACCES, Errno::EISDIR) { File.write(@folder, "x") }
    end
  end
end
