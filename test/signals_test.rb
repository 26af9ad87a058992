# frozen_string_literal: true

require_relative "test_helper"

# Tests run as well where whoever started them ignores signals: a shell SIGINT for what is in the background, nohup
# SIGHUP.
class SignalsTest < HeddleTest
  SIGNALS = %w[INT QUIT TERM HUP PIPE].freeze
  ROOT = File.expand_path("..", __dir__)
  IGNORED = %(puts File.read("/proc/self/status")[/SigIgn:\\s*(\\h+)/, 1].to_i(16))
  NO_TESTS = "require 'test_helper'; Minitest.singleton_class.remove_method(:run); def Minitest.run(*) = true"

  # Runs Ruby code in a process with the signals ignored.
  def ignoring(code, *options, names: SIGNALS)
    shell = ["sh", "-c", %(trap "" #{names.join(" ")}; exec "$@"), "sh"]
    outcome = run_command(*shell, *ruby_command, *options, "-e", code)

    assert_equal(["", 0], [outcome.err, outcome.status.exitstatus])
    outcome.out
  end

  def test_a_test_process_and_its_children_ignore_none
    child = "system(#{RbConfig.ruby.inspect}, '-e', #{IGNORED.inspect})"
    out = ignoring("#{NO_TESTS}; $stdout.sync = true; #{IGNORED}; #{child}")

    assert_equal("0\n0\n", out)
  end

  def test_a_test_process_is_interrupted
    out = ignoring("#{NO_TESTS}; begin; Process.kill(:INT, $$); sleep(5); rescue Interrupt; puts :interrupted; end")

    assert_equal("interrupted\n", out)
  end

  # bin/test itself goes on ignoring it.
  def test_the_tools_hand_none_on
    out = ignoring(<<~RUBY, "-r#{ROOT}/tools/signals")
      $stdout.sync = true
      Tools::Signals.set_up
      system(#{RbConfig.ruby.inspect}, '-e', #{IGNORED.inspect})
      #{SIGNALS.inspect}.each { |name| Process.kill(name, $$) }
      sleep(0.05)
      puts "unharmed"
    RUBY

    assert_equal("0\nunharmed\n", out)
  end

  def test_the_tools_are_ended_by_what_is_not_ignored
    %w[TERM HUP].each do |name|
      out = ignoring(<<~RUBY, "-r#{ROOT}/tools/signals", names: ["INT"])
        Tools::Signals.set_up
        begin
          Process.kill(#{name.inspect}, $$)
          sleep(5)
        rescue SignalException => e
          puts e.message
        end
      RUBY

      assert_equal("SIG#{name}\n", out)
    end
  end
end
