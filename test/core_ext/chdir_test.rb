# frozen_string_literal: true

require_relative "../test_helper"

# Two blocks that change the directory do not overlap: Ruby refuses it to threads, and Heddle to tasks. The directory is
# the process's, so each test is a program.
contract "Chdir" do
  def run_program(program)
    result = run_ruby(program, env: { "HEDDLE_BACKEND" => backend })

    assert_predicate(result.status, :success?, result.err)
    result.out
  end

  changes = { "Dir.chdir" => "Dir.chdir(\"/usr\") { Dir.pwd }", "Dir.chdir_without_a_block" => "Dir.chdir(\"/usr\")",
              "Dir#chdir" => "Dir.new(\"/usr\").chdir { Dir.pwd }",
              "Dir.fchdir" => "Dir.open(\"/usr\") { |dir| Dir.fchdir(dir.fileno) { Dir.pwd } }" }
  starts = { "tasks" => "Heddle.spawn(isolated: true)", "plain_fibers" => "Fiber.schedule" }

  changes.to_a.product(starts.to_a) do |(name, change), (kind, start)|
    define_method("test_#{name}_in_another_one_of_two_#{kind}") do
      out = run_program(<<~RUBY)
        Dir.chdir("/")
        Heddle.run do
          done = Thread::Queue.new
          inside = Thread::Queue.new
          tried = Thread::Queue.new
          #{start} { Dir.chdir("/tmp") { (inside << true) && tried.pop && p(Dir.pwd) } && done << true }
          inside.pop
          #{start} do
            #{change}
          rescue RuntimeError => e
            p(e.class, e.message)
          ensure
            tried << true
            done << true
          end
          2.times { done.pop }
          p(Dir.chdir("/usr") { Dir.pwd })
        end
        p(Dir.pwd)
      RUBY
      refusal = "RuntimeError\n\"conflicting chdir during another chdir block\"\n"

      assert_equal("#{refusal}\"/tmp\"\n\"/usr\"\n\"/\"\n", out)
    end
  end

  def test_a_block_within_a_block_of_the_same_task
    out = run_program(<<~RUBY)
      Dir.chdir("/")
      Heddle.run do
        Heddle.spawn { Dir.chdir("/tmp") { p(Dir.chdir("/usr") { sleep(0.001) && Dir.pwd }, Dir.pwd) } }
      end
      p(Dir.pwd)
    RUBY

    assert_equal("\"/usr\"\n\"/tmp\"\n\"/\"\n", out)
  end

  def test_the_warning_of_a_block_within_a_block_names_its_line
    result = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Heddle.run do
        Dir.chdir("/tmp") do
          Dir.chdir("/usr")
        end
      end
    RUBY

    warning = "-e:3: warning: conflicting chdir during another chdir block\n"

    assert_includes([warning, "#{warning}-e:2: note: previous chdir was here\n"], result.err)
  end

  def test_the_value_and_the_arguments_of_the_block
    out = run_program(<<~RUBY)
      def left = Dir.chdir("/tmp") { return :returned }
      Heddle.run do
        p(Dir.chdir("/tmp") { |path| path }, Dir.chdir("/tmp") { next 1 }, Dir.chdir("/tmp") { break 2 }, left)
        p(Dir.open("/tmp") { |dir| dir.chdir { |*given| given } }, Dir.chdir("/"), Dir.chdir("/tmp", &:upcase))
        p(begin Dir.chdir(1, 2) rescue $!.class end)
      end
    RUBY

    assert_equal("\"/tmp\"\n1\n2\n:returned\n[]\n0\n\"/TMP\"\nArgumentError\n", out)
  end

  def test_a_block_that_is_left
    out = run_program(<<~RUBY)
      Dir.chdir("/")
      Heddle.run do
        left = Heddle.spawn(isolated: true) { Dir.chdir("/tmp") { raise("left") } }.wait
        failed = Heddle.spawn(isolated: true) { Dir.chdir("/none") { flunk } }.wait
        inside = Thread::Queue.new
        cancelled = Heddle.spawn { Dir.chdir("/tmp") { (inside << true) && sleep } }
        inside.pop
        p(left.error.message, failed.error.class, cancelled.cancel.wait.status, Dir.chdir("/usr") { Dir.pwd })
      end
      p(Dir.pwd)
    RUBY

    assert_equal("\"left\"\nErrno::ENOENT\n:cancelled\n\"/usr\"\n\"/\"\n", out)
  end
end
