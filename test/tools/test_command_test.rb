# frozen_string_literal: true

require_relative "../test_helper"

# What bin/test says of a failure.
class TestCommandTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  FAILING = <<~'RUBY'
    require "test_helper"
    class OddTest < HeddleTest
      def test_fine = pass
      define_method("test_that's odd") { flunk("as it should") }
      def test_dies = warn("last words") || exit!(3)
      def test_talks = flunk(Array.new(100) { |number| "line #{number}" }.join("\n"))
    end
  RUBY

  def run_shell(line)
    run_command("sh", "-c", line, env: { "HEDDLE_RUBIES" => RbConfig.ruby }, chdir: ROOT)
  end

  def failing_file
    File.join(tempdir, "odd_test.rb").tap { |path| File.write(path, FAILING) }
  end

  def test_a_failure_comes_with_the_command_that_runs_it_alone
    outcome = run_shell("bin/test #{failing_file} --seed 7 -e '/dies|talks/'")

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/^1 passed, 1 failed, 0 skipped$/, outcome.out)
    again = run_shell(outcome.out[%r{^  (bin/test .*--seed 7.*)$}, 1])

    assert_match(/^0 passed, 1 failed, 0 skipped$/, again.out)
    assert_includes(again.out, "as it should")
  end

  def test_so_does_a_crash
    outcome = run_shell("bin/test #{failing_file} -n test_dies")

    assert_match(/^  bin.*\n(      .*\n)+      last words$/, outcome.out)
    assert_match(/ FAIL .* crashed or ended early .*, in OddTest#test_dies$/, outcome.out)
    assert_match(%r{^  bin/test .*odd_test.rb -n OddTest\\?#test_dies --seed \d+ --ruby \S+$}, outcome.out)
  end

  def test_several_rubies
    outcome = run_shell("bin/test #{failing_file} -n test_fine --ruby #{RbConfig.ruby} --ruby #{RbConfig.ruby}")

    assert_equal(1, outcome.out.scan(/^Ruby .*: 1 files, 1 runs, .* s$/).size, outcome.out)
    assert_equal(["", "1 passed, 0 failed, 0 skipped"], outcome.out.lines(chomp: true).drop(1))
    outcome = run_shell("bin/test #{failing_file} -n test_fine --ruby #{RbConfig.ruby} --ruby none/of/these")

    assert_equal(1, outcome.status.exitstatus)
    assert_includes(outcome.err, "none/of/these")
    outcome = run_shell("bin/test #{failing_file} -n test_fine --ruby")

    assert_includes(outcome.err, "--ruby what?")
  end

  # Of a long log only the end may be had.
  def test_at_the_end_the_failure_is_told_once_more_and_shorter
    outcome = run_shell("bin/test #{failing_file} --seed 7 -n test_talks")
    log, short = outcome.out.split("To run a failed test alone:")

    assert_includes(log, "\n      line 99\n")
    assert_match(/^  bin.*\n      Failure:\n      OddTest#test_talks.*:\n      line 0\n/, short)
    assert_includes(short, "      line 12\n      ...\n")
    refute_includes(short, "line 13")
  end

  # A test that fails only at its first run, and one that fails at each.
  def test_what_fails_beside_others_is_run_once_more
    mark = File.join(tempdir, "mark")
    once = File.join(File.dirname(mark), "first_test.rb")
    File.write(once, <<~RUBY)
      require "test_helper"
      class FirstTest < HeddleTest
        def test_once = assert(File.exist?("#{mark}"), "not yet").tap { pass }
        def teardown = File.write("#{mark}", "")
      end
    RUBY
    outcome = run_shell("bin/test #{failing_file} #{once} -e '/dies|talks|odd/'")

    assert_predicate(outcome, :success?, outcome.out)
    assert_match(/^1 passed, 0 failed, 0 skipped, 1 unsteady$/, outcome.out)
    assert_match(%r{^Unsteady: .*\n  bin/test .*first_test.rb -n FirstTest\\?#test_once }, outcome.out)
    File.delete(mark)
    outcome = run_shell("bin/test #{failing_file} #{once} -e '/dies|talks/'")

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/^1 passed, 1 failed, 0 skipped, 1 unsteady$/, outcome.out)
  end

  def test_a_crash_is_not_run_once_more
    other = File.join(tempdir, "other_test.rb")
    File.write(other, FAILING)
    outcome = run_shell("bin/test #{failing_file} #{other} -n /dies/")

    assert_match(/^0 passed, 2 failed, 0 skipped$/, outcome.out)
    refute_includes(outcome.out, "once more, alone")
  end

  def test_no_test_is_no_success
    outcome = run_shell("bin/test #{failing_file} -n test_nothing")

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/^no test matches$/, outcome.out)
  end
end
