# frozen_string_literal: true

require_relative "../../test_helper"

# A sandbox that refuses what the better backends need: the poll backend takes their place.
class WithoutIoUringAndEpollTest < HeddleTest
  SECCOMP = File.expand_path("../../support/seccomp.rb", __dir__)
  REFUSE = "Seccomp.refuse(*Seccomp::IO_URING, Seccomp::EPOLL_CREATE1, error: Errno::ENOSYS)"

  def test_poll_is_chosen
    out = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => nil })
      require #{SECCOMP.dump}
      #{REFUSE}
      answer = Heddle.run do
        reader, writer = IO.pipe
        waiting = Heddle.spawn { reader.readpartial(10) }
        sleep(0.001)
        writer.write("text")
        [Fiber.scheduler.backend, waiting.value]
      end
      print(answer)
      print(Heddle.backends.filter_map { |one| one[:name] if one[:available] })
    RUBY

    assert_equal('["poll", "text"]["poll"]', out)
  end

  # An idle set is an epoll object elsewhere.
  def test_idle_sets_work
    profile = File.join(tempdir, "profile.rb")
    File.write(profile, "require #{SECCOMP.dump}\n#{REFUSE}\n")
    file = File.expand_path("../sockets/an_idle_set_reports_each_socket_once_test.rb", __dir__)
    outcome = run_command(*ruby_command, "-I#{File.expand_path("../..", __dir__)}", "-r#{profile}", file,
                          env: { "HEDDLE_BACKEND" => "poll" })

    assert_match(/ [1-9]\d* assertions, 0 failures, 0 errors, 0 skips/, outcome.out)
  end

  def test_a_better_backend_that_was_asked_for_is_an_error
    outcome = run_ruby("require #{SECCOMP.dump}; #{REFUSE}; Heddle.run(backend: :epoll) { nil }")

    assert_match(/backend epoll cannot be used: epoll_create1: Function not implemented/, outcome.err)
  end

  def test_the_doctor_says_so
    profile = File.join(tempdir, "profile.rb")
    File.write(profile, "require #{SECCOMP.dump}\n#{REFUSE}\n")
    outcome = run_command(RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", "-r#{profile}",
                          "-rheddle/cli", "-e", "exit Heddle::CLI.start(%w[doctor])",
                          env: { "HEDDLE_BACKEND" => nil })

    lines = [/^Backend +poll$/, /^ +uring: not available: /, /^ +epoll: not available: /, /^ +poll: available$/]

    lines.each { |line| assert_match(line, outcome.out) }
    assert_match(/^Advice .*poll does the same, and takes time for every descriptor/m, outcome.out)
  end
end
