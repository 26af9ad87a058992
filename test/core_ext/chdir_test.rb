# frozen_string_literal: true

require_relative "../test_helper"

# Two blocks that change the directory do not overlap: what Ruby refuses to threads is refused to tasks. (The directory
# is the process's, so each test is a program.)
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
