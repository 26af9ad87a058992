# frozen_string_literal: true

require "fileutils"
require_relative "support"

module Tools
  # Runs programs with their output in a log file.
  module Command
    # Settings of the user's Ruby and Bundler, which are not for the tools' own work.
    FOREIGN = %w[
      BUNDLE_BIN_PATH BUNDLE_DEPLOYMENT BUNDLE_FROZEN BUNDLE_GEMFILE BUNDLE_PATH BUNDLE_WITH BUNDLE_WITHOUT
      BUNDLER_SETUP
      DESTDIR GEM_HOME GEM_PATH MAKEFLAGS MFLAGS RUBYLIB RUBYOPT
    ].freeze

    module_function

    # @param log [String] file that gets the output
    # @param on_line called with each line
    # @param outlive [Boolean] whether the program may end on its own when we are killed; a package
    #   manager must, a compiler must not
    # @raise [Problem] when the program fails
    def run(*command, log:, failure: nil, env: {}, chdir: nil, on_line: nil, outlive: false)
      FileUtils.mkdir_p(File.dirname(log))
      status = File.open(log, "a") do |file|
        file.sync = true
        file.puts("$ #{command.join(" ")}")
        follow(tied(command, outlive), env, chdir) do |line|
          file.write(line)
          on_line&.call(line.scrub)
        end
      end
      return if status.success?

      raise Problem.new(failure || "#{File.basename(command.first)} failed (#{status})", log: log)
    end

    # @return [String, nil] standard output, or nil when the program fails or is missing
    def output(*command, env: {}, chdir: ROOT)
      foreign = FOREIGN.to_h { |name| [name, nil] }
      text = IO.popen([foreign.merge(env), *command, { err: File::NULL, in: File::NULL, chdir: chdir }], &:read)
      text if $CHILD_STATUS.success?
    rescue SystemCallError
      nil
    end

    # Ends with us even if we are killed without a chance to clean up.
    def tied(command, outlive)
      outlive || !Tools.which("setpriv") ? command : ["setpriv", "--pdeathsig", "TERM", "--", *command]
    end

    def follow(command, env, chdir, &block)
      options = { err: %i[child out], in: File::NULL, pgroup: true }
      options[:chdir] = chdir if chdir
      pipe = IO.popen([FOREIGN.to_h { |name| [name, nil] }.merge(env), *command, options])
      pipe.each_line(&block)
      pipe.close
      $CHILD_STATUS
    rescue Errno::ENOENT
      raise Problem, "#{command.first} is missing"
    ensure
      stop(pipe) if pipe && !pipe.closed?
    end

    # After an interrupt: the whole group of the program, which is not ours.
    def stop(pipe)
      Process.kill("TERM", -pipe.pid)
      pipe.close
    rescue Errno::ESRCH
      nil
    end
  end
end
