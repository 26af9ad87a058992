# frozen_string_literal: true

require_relative "../test_helper"

# The child of a fork, or of Process.daemon, has no scheduler, and can do all that the parent does.
contract "ForkPatch" do
  def test_a_child_has_none
    reactor do
      pid = fork { exit!(Fiber.scheduler.nil? ? 0 : 1) }

      assert_predicate(Process.wait2(pid).last, :success?)
    end
  end

  def test_a_daemon_has_none
    heddle_only("schedulers")
    path = File.join(tempdir, "daemon")

    assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Heddle.run do
        Process.daemon(true, true)
        File.write("#{path}.part", Fiber.scheduler.inspect)
        File.rename("#{path}.part", "#{path}")
        exit!
      end
    RUBY
    wait_until { File.exist?(path) }

    assert_equal("nil", File.read(path))
  end

  # A task of the parent holds the lock of the IO, and another one waits for that.
  def test_a_child_writes_where_the_parent_does
    heddle_only("tasks")
    out = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      require "socket"
      $stdout.sync = true
      one, other = UNIXSocket.pair
      text = "x" * 2_000_000
      Heddle.run do
        writing = Heddle.spawn { one.write(text) }
        behind = Heddle.spawn { one.write("behind") }
        writing.wait(0.01)
        pid = fork do
          other.readpartial(text.size) while other.wait_readable(0.5)
          GC.start
          print(one.write("here"))
          thread = Thread.new { one.write("thread") }
          print(thread.join(5) && thread.value)
          print(Heddle.run { Heddle.spawn { one.write("a task") }.value })
          GC.start
          exit!
        end
        Process.wait(pid)
        print(" ", writing.wait(5) && behind.wait(5) && :ended)
      end
    RUBY

    assert_equal("466 ended", out)
  end

  # The content of the IO's buffer is the child's, too, as in plain Ruby.
  { "flushes" => "writer.flush", "closes" => "writer.close", "flushes in a task" => "Heddle.run { writer.flush }",
    "closes in a task" => "Heddle.run { writer.close }" }.each do |name, call|
    define_method("test_a_child_#{name.tr(" ", "_")}_what_a_task_of_the_parent_flushes") do
      heddle_only("tasks")

      assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
        reader, writer = IO.pipe.each { |io| io.sync = false }
        Heddle.run do
          nil while writer.write_nonblock("x" * 4096, exception: false) != :wait_writable
          writer.write("text")
          Heddle.spawn { writer.flush }.wait(0.01)
          pid = fork do
            Thread.new { reader.readpartial(4096) until reader.eof? }
            #{call}
            exit!(true)
          end
          exit!(Process.wait2(pid).last.success?)
        end
      RUBY
    end
  end

  # The task lets others run after each part of what it writes, and holds the lock of the file meanwhile.
  def test_a_child_writes_to_a_file_of_which_the_parent_has_written_a_part
    heddle_only("tasks")

    assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      File.open("#{File.join(tempdir, "file")}", "w") do |file|
        Heddle.run do
          writing = Heddle.spawn { file.write("x" * 20_000_000) }
          abort "it has written all" if writing.finished?
          pid = fork { exit!(file.write("child") && file.flush && true) }
          abort "the child failed" unless Process.wait2(pid).last.success?
        end
      end
    RUBY
  end
end
