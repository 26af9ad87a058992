# frozen_string_literal: true

# bin/test: takes 50 s, 0.5 of a core

require "test_helper"
require_relative "bench_case"
require_relative "../../bench/support/child"

# The rows of operations, tiny, on Heddle and on threads: each child checks its own result. And the runner itself: a
# peer that hangs, crashes or gets it wrong must be seen, and must not stop the others.
class BenchTest < BenchCase
  # Few enough to be quick, enough that every task waits for something.
  SCALE = 0.005

  ROWS = Bench.rows.values.select { |row| row.group.name == "operations" }.freeze

  class << self
    # Row => its cells. One run measures all rows.
    attr_accessor :measured
  end

  ROWS.each do |row|
    define_method("test_row_#{row.name}") do
      cells = measured.fetch(row.name)

      assert_equal(%w[heddle heddle-epoll threads], cells.map { |cell| cell["peer"] })
      cells.each do |cell|
        assert_nil(cell["failure"], cell.inspect)
        peer = Bench.peers.fetch(cell["peer"])
        operations = row.operations_at(SCALE, peer)

        assert_equal(operations, cell["operations"])
        assert_equal(row.expect.call(operations).inspect[0, 100], cell["result"])
        assert_operator(cell["median"], :>, 0)
      end
    end
  end

  { "c" => "epoll", "c-uring" => "uring" }.each do |peer, backend|
    define_method("test_the_bare_#{backend}_loop_does_the_same_work") do
      known = Heddle.backends.find { |one| one[:name] == backend }
      skip("needs #{backend}") unless known&.fetch(:available)
      cell, = bench("--rows", "echo", "--peers", peer, "--scale", "0.01").fetch("cells")

      assert_nil(cell["failure"], cell.inspect)
      assert_equal([400, "400"], cell.values_at("operations", "result"))
    end
  end

  # The program measures by itself, and says when it has not reached that time.
  def test_system_calls_can_be_made_dear
    skip("needs Linux") unless RUBY_PLATFORM.include?("linux")
    answer = bench("--rows", "echo", "--peers", "c", "--scale", "0.01", "--dear-calls", "1500")
    cell, = answer.fetch("cells")

    assert_nil(cell["failure"], cell.inspect)
    assert_match(/a system call takes \d+ ns \(made dear .* at least 1500 ns\), a page fault \d+ ns/,
                 answer["environment"]["calls"])

    outcome = run_command(Bench::CProgram.new("dear_calls").path, "1500", "grep", "Seccomp", "/proc/self/status")

    assert_match(/^Seccomp:\s*2$/, outcome.out, outcome.err)
  end

  def test_failures_are_told_apart_and_do_not_stop_the_rest
    rows = { "fine" => nil, "wrong" => "wrong result", "crashes" => "crashes", "hangs" => "hangs" }
    answer = nil
    in_time(2, 8, 32) do |seconds|
      answer = bench("--rows", rows.keys.join(","), "--peers", "threads", "--timeout", seconds.to_s, prelude: FIXTURE)
      answer.fetch("cells").to_h { |cell| [cell["row"], cell["failure"]] } == rows
    end

    assert_match(/2 in place of 3/, answer["cells"].find { |cell| cell["row"] == "wrong" }["detail"])
    assert_match(/no good/, answer["cells"].find { |cell| cell["row"] == "crashes" }["detail"])
  end

  def test_the_table_says_what_happened
    out = run_bench("--rows", "fine,crashes", "--peers", "threads,threads", prelude: FIXTURE).out

    assert_match(/^Ruby: .*#{Regexp.escape(RUBY_VERSION)}/, out)
    assert_match(/^kernel: /, out)
    assert_match(%r{a row that works .*cpu / turn .*±}, out)
    assert_match(/- crashes, threads: crashes \(.*no good/, out)
  end

  # It need not be waited for until the time is over.
  def test_who_does_nothing_hangs
    cell, = bench("--rows", "idles", "--peers", "threads", "--timeout", "250", prelude: FIXTURE)["cells"]

    assert_equal(["hangs", "no end, and nothing done in 4 s"], cell.values_at("failure", "detail"))
  end

  def test_no_child_outlives_a_runner_that_is_killed
    skip("setpriv is not installed") if Bench::Child::TIED.empty?
    children = nil
    run_command(RbConfig.ruby, "-r", FIXTURE, RUN, "--no-install", "--rows", "idles", "--peers", "threads") do |pid|
      wait_until("a child") { children_of(pid).any? }
      children = children_of(pid)
      Process.kill(:KILL, pid)
    end

    assert(wait_until("the end of the child") { children.none? { |pid| File.exist?("/proc/#{pid}") } })
  end

  def test_rounds_and_turns
    cell, = bench("--rows", "fine", "--peers", "threads", "--rounds", "2", "--turns", "3", prelude: FIXTURE)["cells"]

    assert_equal([2, 3, 3], cell.values_at("rounds", "turns", "operations"))
  end

  # They hang for 8 s in the first round, and have no part in the second one. Twice would not fit into the time.
  def test_those_that_hang_cost_time_once
    started = now
    bench("--rows", "fine", "--peers", "threads,heddle", "--rounds", "2", prelude: FIXTURE)
    seconds = 14 + now - started
    cells = bench("--rows", "fine,idles", "--peers", "threads,heddle", "--rounds", "2", "--seconds", seconds.to_s,
                  "--timeout", "250", prelude: FIXTURE)["cells"]

    assert_equal([2, 2, nil, nil], cells.map { |cell| cell["rounds"] })
  end

  # A row that says nothing of its result has to have the same one everywhere.
  def test_results_that_differ_are_told
    cells = bench("--rows", "differs", "--peers", "heddle,threads", prelude: FIXTURE)["cells"]

    assert_equal([nil, "wrong result"], cells.map { |cell| cell["failure"] })
    assert_equal("\"Bench::ThreadAdapter\" in place of nil", cells.last["detail"])
  end

  def test_unknown_names_are_refused
    outcome = run_bench("--rows", "nonesuch")

    refute_predicate(outcome, :success?)
    assert_match(/no nonesuch; there are: .*memcached.*echo/, outcome.err)
  end

  private

  def measured
    self.class.measured ||=
      bench("--rows", ROWS.map(&:name).join(","), "--peers", "heddle,heddle-epoll,threads", "--scale", SCALE.to_s,
            "--keep")
        .fetch("cells").group_by { |cell| cell["row"] }
  end

  def children_of(pid)
    Dir.glob("/proc/[0-9]*/stat").filter_map do |file|
      file[/\d+/] if File.read(file)[/.*\) \S (\d+)/m, 1] == pid.to_s
    rescue SystemCallError
      nil
    end
  end
end
