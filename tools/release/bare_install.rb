# frozen_string_literal: true

require "tmpdir"
require_relative "../command"

module Tools
  module Release
    # Installs gem files where nothing else is: an empty home, no other gem, no setting of this user, and for a gem with
    # compiled files no compiler. Then a program asks for its first answer.
    class BareInstall
      # The command `gem`, which need not be beside the Ruby.
      INSTALL = ["-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)", "--",
                 "install", "--local", "--no-document"].freeze
      ANSWER = File.join(__dir__, "first_answer.rb")
      # Seconds from the start of `gem install` to the first answer.
      LIMITS = { source: 60, compiled: 5 }.freeze

      attr_reader :seconds, :said

      # @param ruby [String] the path of the program
      # @param gem [String] the path of the gem
      # @param compiled [Boolean] whether the gem has compiled files for this platform
      def initialize(ruby, gem, compiled:)
        @ruby = ruby
        @gem = gem
        @compiled = compiled
      end

      def limit = LIMITS.fetch(@compiled ? :compiled : :source)

      # @return [self]
      # @raise [Problem] if it cannot be installed, or does not answer
      def try
        Dir.mktmpdir("heddle-bare-") do |home|
          before = now
          cpu_before = cpu
          run(home, *INSTALL, @gem)
          @said = run(home, ANSWER).lines.last.to_s.strip
          @seconds = now - before
          @cpu = cpu - cpu_before
        end
        raise Problem, "the first answer is #{@said.inspect}" unless @said.start_with?("here")

        self
      end

      # @return [String]
      def to_s
        format("%s: %.1f s to the first answer (limit %d s), %.1f s of CPU time: %s", File.basename(@gem), @seconds,
               limit, @cpu, @said)
      end

      private

      def run(home, *arguments)
        environment = { "HOME" => home, "GEM_HOME" => File.join(home, "gems"), "GEM_PATH" => File.join(home, "gems"),
                        "PATH" => path(home), "LANG" => "C.UTF-8" }
        options = { unsetenv_others: true, chdir: home, err: %i[child out], in: File::NULL }
        text = IO.popen([environment, @ruby, *arguments, options], &:read)
        raise Problem, "#{arguments.last} fails: #{text}" unless $CHILD_STATUS.success?

        text
      end

      # With compiled files neither a compiler nor make is within reach.
      def path(home)
        return "/usr/local/bin:/usr/bin:/bin" unless @compiled

        File.join(home, "nothing").tap { |folder| FileUtils.mkdir_p(folder) }
      end

      def cpu = Process.times.then { |times| times.cutime + times.cstime }

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
