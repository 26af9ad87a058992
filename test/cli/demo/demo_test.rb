# frozen_string_literal: true

# bin/test: takes 37 s, 0.3 of a core

require "json"
require_relative "../../test_helper"
require_relative "answering_server"

# heddle demo as a command, on small sizes.
class DemoTest < HeddleTest
  EXE = File.expand_path("../../../exe/heddle", __dir__)
  RATES = %i[blocking threads heddle].freeze

  def demo(*args, **, &)
    run_command(*ruby_command, EXE, "demo", *args, **, &)
  end

  def json(outcome)
    assert_equal(1, outcome.out.lines.size, outcome.err)
    JSON.parse(outcome.out, symbolize_names: true)
  end

  def test_json
    outcome = demo("--requests", "20", "--delays", "0,10", "--json")
    result = json(outcome)

    assert_equal(0, outcome.status.exitstatus, outcome.err)
    assert_equal([RUBY_VERSION, 0, [0, 10]],
                 [result[:ruby], result[:errors], result[:rows].map { |row| row[:delay_ms] }])
    assert_includes(Heddle.backends.map { |backend| backend[:name].to_s }, result[:backend])
    result[:rows].each { |row| row.values_at(*RATES).each { |rate| assert_operator(rate, :>, 0) } }

    assert_operator(result[:rows].last[:blocking], :<, 100)
    assert_includes(1.0..20.0, result[:slow][:heddle_seconds])
  end

  def test_text
    outcome = demo("--requests", "20", "--delays", "10,500,7")

    assert_equal(0, outcome.status.exitstatus, outcome.err)
    assert_match(/^requests per second +10 ms +500 ms +7 ms$/, outcome.out)
    assert_match(/^blocking +\d+ +[12]\* +\d+$/, outcome.out)
    assert_match(/^Heddle, a fiber each( +\d[\d,]*){3}$/, outcome.out)
    assert_match(/^NeverBlock over threads, 2008 +\+149\.6 % +\+148\.4 %$/, outcome.out)
    assert_match(/^500 ms  blocking  #+ [12]$/, outcome.out)
    assert_match(/^20 requests .* Heddle \d+\.\d+ s, blocking \d{2,}\.\d s/, outcome.out)
    assert_match(/^Errors: none/, outcome.out)
  end

  def test_shows_progress_on_standard_error_only
    outcome = demo("--requests", "5", "--delays", "0", "--json")

    assert_equal(4, outcome.err.lines.size)
    assert_match(%r{\[\.+\]  1/4  5 requests answered after 0 ms, blocking}, outcome.err)
  end

  def test_processes
    outcome = demo("--requests", "21", "--delays", "0", "--processes", "2")

    assert_equal(0, outcome.status.exitstatus, outcome.err)
    assert_match(/^Heddle, 2 processes +[\d,]+$/, outcome.out)
    assert_match(/^  gain +[+-]/, outcome.out)
  end

  def test_more_than_a_low_limit_of_open_files
    need_descriptors(400)
    outcome = run_command("sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh", *ruby_command, EXE, "demo", "--requests", "300",
                          "--delays", "100", "--json")

    assert_equal([0, 0], [outcome.status.exitstatus, json(outcome)[:errors]], outcome.err)
  end

  def test_a_server_of_the_users
    AnsweringServer.open { |number| [200, "hello"] if number } => server
    outcome = demo("--url", server.url, "--requests", "20", "--json")
    result = json(outcome)

    assert_equal([0, 0, [nil]],
                 [outcome.status.exitstatus, result[:errors], result[:rows].map { |row| row[:delay_ms] }])
    assert_nil(result[:slow])
    assert_includes(43..62, server.close) # only as many blocking requests as fit in a second
  end

  def test_wrong_answers_are_counted
    {
      "status 500" => ->(number) { number % 10 == 5 ? [500, "oops"] : [200, "hello"] },
      "wrong body" => ->(number) { number % 10 == 5 ? [200, "hullo"] : [200, "hello"] },
      "EOFError" => ->(number) { number % 10 == 5 ? [200, "hello", 99] : [200, "hello"] }
    }.each do |kind, answer|
      server = AnsweringServer.open(&answer)
      outcome = demo("--url", server.url, "--requests", "20")
      server.close

      assert_equal(1, outcome.status.exitstatus)
      said = outcome.out.match(/^Errors: (\d+) of (\d+) requests went wrong$\n  \d+ x #{kind}/)

      refute_nil(said, outcome.out)
      errors, requests = said.captures.map(&:to_i)

      assert_includes(41..60, requests) # only as many blocking requests as fit in a second
      assert_equal((0...(requests + 2)).count { |number| number % 10 == 5 }, errors)
    end
  end

  def test_a_server_that_is_not_there
    outcome = demo("--url", "http://127.0.0.1:#{free_port}/", "--requests", "5", "--json")

    assert_equal([1, 15], [outcome.status.exitstatus, json(outcome)[:errors]])
  end

  # The demo must not leave its server behind, however it ends.
  def test_nothing_is_left_when_it_is_killed
    %i[INT TERM KILL].each do |signal|
      processes = []
      outcome = demo("--requests", "50", "--delays", "3000") do |pid|
        processes = wait_until { (children = children_of(pid)).size >= 2 && children }
        sleep(0.3)
        Process.kill(signal, pid)
      end

      refute_predicate(outcome.status, :success?)
      assert_operator(outcome.err.lines.grep_v(/^\[/).size, :<, 2, outcome.err)
      wait_until("the end of #{processes}") { processes.none? { |pid| running?(pid) } }
    end
  end

  def children_of(pid)
    File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
  end

  def running?(pid)
    File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] != "Z"
  rescue SystemCallError
    false
  end
end
