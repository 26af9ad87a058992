# frozen_string_literal: true

# What all tools share: the places, and the one kind of error.
module Tools
  ROOT = File.expand_path("..", __dir__)
  # Below this the Fiber scheduler has bugs that no gem can mend.
  OLDEST_RUBY = "3.3.2"

  # A cause and its remedies, told to the user without a backtrace.
  class Problem < StandardError
    attr_reader :remedies, :log

    # @param remedies [Array<String>] one line for each missing piece
    # @param log [String] the file with the output of what failed
    def initialize(message, remedies: [], log: nil)
      super(message)
      @remedies = remedies
      @log = log
    end

    def report
      lines = [message, *remedies]
      lines << "all of its output: #{log}" if log && File.exist?(log)
      lines
    end

    # The end of the failed command's output.
    def log_tail
      File.readlines(log).last(15).join if log && File.exist?(log)
    end
  end

  module_function

  # Everything of ours that is not in the repository.
  def cache
    home = ENV.fetch("XDG_CACHE_HOME", "")
    File.join(home.start_with?("/") ? home : File.expand_path("~/.cache"), "heddle")
  end

  # Files made in the repository, ignored by git.
  def tmp
    File.join(ROOT, "tmp")
  end

  def root_user?
    Process.euid.zero?
  end

  def processors
    require "etc"
    Etc.nprocessors
  end

  # @param programs [Hash{String => String}] by the name of each program: the package of Debian that has it
  # @raise [Problem] if one of them is missing
  def need_programs(programs)
    missing = programs.reject { |name, _| which(name) || File.executable?("/usr/sbin/#{name}") }.values
    raise Problem, "as root, apt-get install #{missing.join(" ")}" if missing.any?
  end

  # @return [String, nil] the path of a command
  def which(command)
    ENV.fetch("PATH", "").split(":").map { |folder| File.join(folder, command) }
      .find { |path| File.file?(path) && File.executable?(path) }
  end

  # Writes a file so that no reader ever sees half of it.
  def write_whole(path, content)
    require "fileutils"
    FileUtils.mkdir_p(File.dirname(path))
    File.write("#{path}.#{$PROCESS_ID}", content)
    File.rename("#{path}.#{$PROCESS_ID}", path)
  end

  def newer?(version, than)
    (version.scan(/\d+/).map(&:to_i) <=> than.scan(/\d+/).map(&:to_i)).positive?
  end
end

require "English"
