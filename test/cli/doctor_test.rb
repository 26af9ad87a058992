# frozen_string_literal: true

# bin/test: takes 2 s, 1.0 of a core

require "json"
require_relative "../test_helper"

# heddle doctor: what it says and what it says it of.
class DoctorTest < HeddleTest
  EXE = File.expand_path("../../exe/heddle", __dir__)
  REFUSED_CALLS = File.expand_path("../support/api/refused_calls.rb", __dir__)

  def doctor(*args, **options)
    run_command(*ruby_command, EXE, "doctor", *args, **options)
  end

  def facts(**)
    JSON.parse(doctor("--json", **).out, symbolize_names: true)
  end

  def test_text
    outcome = doctor

    assert_equal(["", 0], [outcome.err, outcome.status.exitstatus])
    %w[Heddle Ruby Backend Kernel Hooks Limits Advice].each { |part| assert_match(/^#{part} +\S/, outcome.out) }
    assert_includes(outcome.out, RUBY_DESCRIPTION[/ruby \S+/])
  end

  # Heddle asks the ring only for readiness, and needs what Linux 5.11 brought.
  def test_what_io_uring_does
    assert_match(/^ +[+-] io_uring: tells what is ready .* \(Linux 5\.11\)$/, doctor.out)
  end

  # The version of the kernel does not tell: a sandbox refuses what is there, and Linux 5.10.162 has io_uring of 5.15.
  def test_what_the_kernel_lacks_is_found_at_run_time
    features = facts[:kernel][:features]
    uring = Heddle.backends.find { |backend| backend[:name] == "uring" }

    assert_equal([true, uring[:available]], features.values_at(:epoll_pwait2, :io_uring))
    refused = { "new" => [], "io_uring" => features.keys.grep_v(/io_uring/) }
    refused.each do |profile, left|
      outcome = run_command(*ruby_command, REFUSED_CALLS, profile, *ruby_command, EXE, "doctor", "--json")
      found = JSON.parse(outcome.out, symbolize_names: true)[:kernel][:features]

      assert_equal(left, found.select { |_, there| there }.keys, profile)
    end
  end

  # The cost of a system call decides whether small reads and writes share system calls. It can be forced.
  def test_what_a_system_call_costs
    assert_match(/^Calls +a system call takes \d+ ns: (small reads and writes share them|each .* makes its own)$/,
                 doctor.out)
    assert_operator(facts[:calls][:nanoseconds], :>, 0)
    [["direct", "uring", false], ["ring", "uring", true], ["ring", "epoll", false]].each do |calls, backend, shared|
      next unless Heddle.backends.find { |one| one[:name] == backend }&.fetch(:available)

      env = { "HEDDLE_BACKEND" => backend, "HEDDLE_CALLS" => calls }

      assert_equal([shared, calls], facts(env:)[:calls].values_at(:shared, :wanted))
      assert_includes(doctor(env:).out, "(HEDDLE_CALLS=#{calls})")
    end
  end

  def test_an_unknown_way_of_system_calls_is_refused
    assert_match(/HEDDLE_CALLS: "fast" is unknown/, facts(env: { "HEDDLE_CALLS" => "fast" })[:failure])
  end

  def test_json_is_one_line
    outcome = doctor("--json")

    assert_equal(["", 0, 1], [outcome.err, outcome.status.exitstatus, outcome.out.lines.size])
    assert_kind_of(Hash, JSON.parse(outcome.out))
  end

  def test_facts
    facts = facts()

    assert_equal([Heddle::VERSION, RUBY_VERSION], [facts[:heddle], facts[:ruby][:version]])
    assert_equal(Heddle.backends, facts[:backends].map { |backend| backend.merge(name: backend[:name]) })
    assert_equal(Process.getrlimit(:NOFILE).last, facts[:limits][:open_files][:hard])
    assert_equal(Integer(File.read("/proc/sys/vm/max_map_count")), facts[:limits][:max_map_count])
    assert_includes(1000..(facts[:limits][:max_map_count] / 2), facts[:limits][:fibers])
  end

  def test_every_hook_that_this_ruby_calls_is_served
    facts[:hooks].each do |hook|
      assert_equal(ruby_at_least?(hook[:since]), hook[:offered], hook[:name])
      assert_operator(hook, :[], :defined, hook[:name]) if hook[:offered]
    end
  end

  def test_patches
    states = Heddle.patches.group_by { |patch| patch.state.to_s }
    found = facts[:patches].transform_keys(&:to_s)

    assert_equal(states.transform_values { |patches| patches.map { |patch| patch.name.to_s } }, found)
    env = { "HEDDLE_WITHOUT" => "timeout,io_close" }
    text = doctor(env: env).out

    assert_match(/^Patches +#{states["active"].size - 2} active/, text)
    assert_includes(text, "switched off by HEDDLE_WITHOUT or HEDDLE_SAFE: io_close, timeout\n")
  end

  # A method of Net::HTTP that somebody has replaced is left alone.
  def test_net_http
    assert_equal({}, facts[:net_http][:left_out])
    patch = File.join(tempdir, "patch.rb")
    File.write(patch, "require 'net/http'\nmodule Net::HTTPHeader\n  private def capitalize(name) = name\nend\n")
    text = doctor(env: { "RUBYOPT" => "-W0 -r#{patch}" }).out

    assert_match(%r{^Net::HTTP +\d\S+: heddle/accelerate/net_http makes 4 of 5 parts faster\n +not field_names: }, text)
  end

  def test_a_patch_that_there_is_not
    outcome = doctor(env: { "HEDDLE_WITHOUT" => "closes" })

    assert_equal(["", 1], [outcome.err, outcome.status.exitstatus])
    assert_match(/^Backend +none: HEDDLE_WITHOUT: there is no patch closes/, outcome.out)
    assert_match(/unset HEDDLE_WITHOUT/, outcome.out)
  end

  def test_backend_that_was_asked_for
    facts = facts(env: { "HEDDLE_BACKEND" => "epoll" })

    assert_equal(%w[epoll epoll], facts.values_at(:wanted, :backend))
  end

  def test_unknown_backend
    outcome = doctor(env: { "HEDDLE_BACKEND" => "select" })

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/^Backend +none: .*select/, outcome.out)
    assert_match(/unset HEDDLE_BACKEND/, outcome.out)
  end

  # A copy of lib/ without the extension.
  def test_without_the_extension
    lib = File.expand_path("../../lib", __dir__)
    dir = tempdir
    Dir.glob("**/*.rb", base: lib).each do |file|
      FileUtils.mkdir_p(File.dirname(File.join(dir, file)))
      FileUtils.cp(File.join(lib, file), File.join(dir, file))
    end
    outcome = run_command(RbConfig.ruby, "-I#{dir}", "-rheddle/cli", "-e", "exit Heddle::CLI.start(%w[doctor])")

    assert_equal(["", 1], [outcome.err, outcome.status.exitstatus])
    assert_match(/^Backend +none: .*heddle_native/, outcome.out)
    assert_match(/gem pristine heddle/, outcome.out)
  end

  def test_low_soft_limit
    skip("the hard limit is too low") if Process.getrlimit(:NOFILE).last < 1000
    raised = Process.getrlimit(:NOFILE).last
    outcome = run_command("sh", "-c", 'ulimit -Sn 512; exec "$@"', "sh", *ruby_command, EXE, "doctor", "--json")
    facts = JSON.parse(outcome.out, symbolize_names: true)

    assert_equal([512, raised], [facts[:limits][:open_files][:soft], facts[:limits][:open_files_raised_to]])
    assert(facts[:advice].any? { |line| line.include?("ulimit -n #{raised}") })
  end
end
