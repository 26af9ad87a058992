# frozen_string_literal: true

require "rbconfig"

module TestSupport
  # Runs commands and scripts in a process of their own.
  module Subprocess
    ROOT = File.expand_path("../..", __dir__)

    # What came out: stdout, stderr, and the Process::Status.
    Outcome = Struct.new(:out, :err, :status) do
      def success? = status.success?
    end

    # Runs a command to its end. Kills its process group and fails after +timeout+ seconds. With a block, yields
    # the process id while the command runs.
    def run_command(*command, env: {}, input: "", timeout: 300, chdir: nil)
      options = { pgroup: true }
      options[:chdir] = chdir if chdir
      in_read, in_write = IO.pipe
      out_read, out_write = IO.pipe
      err_read, err_write = IO.pipe
      pid = spawn(env, *command, in: in_read, out: out_write, err: err_write, **options)
      [in_read, out_write, err_write].each(&:close)
      threads = [Thread.new { out_read.read }, Thread.new { err_read.read }]
      feed(in_write, input)
      yield pid if block_given?
      status = wait_for_exit(pid, command, timeout, threads)
      Outcome.new(*threads.map(&:value), status)
    ensure
      close_all(in_read, in_write, out_read, out_write, err_read, err_write)
    end

    # Runs Ruby code with this Ruby, the project's lib/ and warnings on. Without RubyGems, unless it is asked for, Ruby
    # starts in a fifth of the time.
    def run_ruby(code, *args, env: {}, input: "", timeout: 300, options: [], heddle: true, gems: false, &block)
      command = ruby_command + options
      command << "--disable=gems" unless gems
      command << "-rheddle" if heddle
      run_command(*command, "-e", code, *args, env: env, input: input, timeout: timeout, &block)
    end

    # This Ruby with the load path of the tests, so that a build variant is taken over.
    def ruby_command
      paths = $LOAD_PATH.select { |path| path.start_with?(ROOT) }.uniq
      [RbConfig.ruby, "-w", *paths.map { |path| "-I#{path}" }]
    end

    # Asserts that a script ended well and said nothing on stderr; returns its stdout.
    def assert_script(code, *args, **options, &block)
      outcome = run_ruby(code, *args, **options, &block)

      assert_predicate(outcome, :success?, "#{outcome.status}\n#{outcome.out}\n#{outcome.err}")
      assert_equal("", outcome.err)
      outcome.out
    end

    # A script with Ruby threads that move between native ones. Such a Ruby may crash when it ends while the last
    # instructions of an ended thread still run, as they do on a busy machine (up to 4.0; ruby/ruby pull request 17736).
    # So it ends without freeing anything.
    def assert_script_of_moving_threads(code, env: {}, **)
      assert_script("#{code}\n$stdout.flush\nexit!(true)", env: { **env, "RUBY_MN_THREADS" => "1" }, **)
    end

    # Sends a signal once the process has loaded Heddle and does nothing but wait: it slept, and took no time, whenever
    # it was looked at for 0.2 s. However busy the machine is, a process that still works is seen as running.
    def signal_when_waiting(signal, pid)
      wait_until_loaded(pid)
      idle = 0
      last = nil
      until idle == 10
        sleep(0.02)
        state = File.read("/proc/#{pid}/stat")[/.*\) (.*)/m, 1].split.values_at(0, 11, 12)
        idle = state == last && state[0] == "S" ? idle + 1 : 0
        last = state
      end
      Process.kill(signal, pid)
    end

    # Returns when the process has loaded Heddle.
    def wait_until_loaded(pid)
      sleep(0.01) until File.read("/proc/#{pid}/maps").include?("heddle_native")
    end

    private

    def feed(pipe, input)
      pipe.write(input)
      pipe.close
    rescue Errno::EPIPE
      pipe.close
    end

    def wait_for_exit(pid, command, timeout, threads)
      deadline = now + timeout
      until (done = Process.wait2(pid, Process::WNOHANG))
        if now > deadline
          Process.kill(:KILL, -pid)
          Process.wait(pid)
          said = threads.map { |thread| thread.join(1)&.value }.join("\n")

          flunk("#{command.last(2).join(" ")} took longer than #{timeout} s\n#{said}")
        end
        sleep(0.005)
      end
      done.last
    end
  end
end
