# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/testing/test_forker"

# The processes of test files, as children of one that has loaded what they need.
class TestForkerTest < HeddleTest
  def setup
    super
    @forker = Tools::TestForker.new({ "HEDDLE_RUBY" => RbConfig.ruby }, File.join(tempdir, "forks.out"))
  end

  def teardown
    @forker.close
    super
  end

  # A test file that does so when it runs.
  def file(code)
    @files = @files.to_i + 1
    File.join(tempdir, "file_#{@files}_test.rb").tap do |path|
      File.write(path, "require 'test_helper'\nclass OddTest < HeddleTest\n  def test_it = (#{code}; pass)\nend\n")
    end
  end

  def start(code)
    path = file(code)
    [@forker.start(["#{path}.json", path], "#{path}.out"), path]
  end

  def test_each_thread_gets_the_process_that_it_has_started
    paths = Array.new(8) { file("File.write(__FILE__ + '.pid', Process.pid)") }
    pids = paths.map { |path| Thread.new { @forker.start(["#{path}.json", path], "#{path}.out") } }.map(&:value)

    assert_equal([true] * 8, pids.map { |pid| @forker.wait(pid, 60).success? })
    assert_equal(pids, paths.map { |path| File.read("#{path}.pid").to_i })
    assert_includes(File.read("#{paths.first}.out"), "1 runs, 1 assertions, 0 failures")
  end

  def test_how_they_end
    codes = ["exit!(3)", "Process.kill(:KILL, Process.pid)", "flunk"]
    endings = codes.map { |code| @forker.wait(start(code).first, 60) }

    assert_equal([false] * 3, endings.map(&:success?))
    assert_match(/exit 3\n.*SIGKILL.*\n.*exit 1/, endings.join("\n"))
  end

  def test_one_that_does_not_end
    pid, = start("sleep")

    assert_nil(@forker.wait(pid, 0.1))
    Process.kill(:KILL, -pid)

    assert_match(/SIGKILL/, @forker.wait(pid, 60).to_s)
  end

  def test_they_end_with_the_forker
    pid, path = start("File.write(__FILE__ + '.begun', '') && sleep")
    wait_until("it has begun") { File.exist?("#{path}.begun") }
    @forker.close

    assert(wait_until("the end") { !File.exist?("/proc/#{pid}") })
    assert_match(/the process that forks has ended/, @forker.wait(pid, 60).to_s)
  end
end
