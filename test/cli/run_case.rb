# frozen_string_literal: true

require_relative "../test_helper"

# What the tests of `heddle run` use: a script is run under plain Ruby and under `heddle run`, in a folder of its own.
class RunCase < HeddleTest
  EXE = File.expand_path("../../exe/heddle", __dir__)

  def script(code, name: "script.rb")
    @dir = tempdir
    File.write(File.join(@dir, name), code)
    name
  end

  def plain(*args, **, &)
    run_command(*ruby_command, *args, chdir: @dir, **, &)
  end

  def heddle(*args, chdir: @dir, **, &)
    run_command(*ruby_command, EXE, "run", *args, chdir: chdir, **, &)
  end

  # Runs the code under both and compares stdout, stderr and status. Returns stdout.
  def assert_same(code, *args, **)
    name = script(code)
    expected, got = [plain(name, *args, **), heddle(name, *args, **)].map do |outcome|
      [outcome.out, outcome.err, outcome.status.exitstatus, outcome.status.termsig]
    end

    assert_equal(expected, got)
    got.first
  end
end
