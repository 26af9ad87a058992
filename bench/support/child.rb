# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require "tempfile"
require_relative "registry"

module Bench
  # A process that runs rows on one peer (bench/child.rb, or the peer's own program), seen from the runner.
  class Child
    # Nothing of Bundler or of the caller's Ruby options may reach a child.
    CLEAN_ENV = { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "BUNDLE_BIN_PATH" => nil,
                  "BUNDLER_SETUP" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil, "HEDDLE_BACKEND" => nil,
                  "HEDDLE_CALLS" => nil, "HEDDLE_TIME_SLICE" => nil }.freeze
    # So that it ends even if we are killed without a chance to clean up.
    TIED = system("setpriv", "true", out: File::NULL, err: File::NULL) ? %w[setpriv --pdeathsig KILL --] : []
    SCRIPT = File.join(ROOT, "child.rb")
    # A process that has not computed anything for this number of seconds waits for ever.
    IDLE = 4
    YJIT = RbConfig::CONFIG["YJIT_SUPPORT"].to_s.then { |support| support != "" && support != "no" }

    # @param prefix [Array<String>] what comes before each command
    def initialize(peer, env:, timeout:, yjit:, prefix: [])
      @peer = peer
      @env = CLEAN_ENV.merge(env, peer.env)
      @timeout = timeout
      @yjit = yjit
      @prefix = prefix
      @warm = []
    end

    # Does one row, after a smaller number of operations the first time. Returns the answer, a Hash with at least
    # "status" and "detail".
    def measure(row, operations, warm_up)
      return command(operations, warm_up) if @peer.command

      unless @warm.include?(row.name) || !row.warm_up
        failed = ask(row, warm_up).then { |answer| answer if %w[hangs crashes].include?(answer["status"]) }
        return failed if failed

        @warm << row.name
      end
      ask(row, operations)
    end

    # Does one row without more ado.
    def ask(row, operations)
      start([RbConfig.ruby, *("--#{"disable-" unless @yjit}yjit" if YJIT), SCRIPT, @peer.file, @peer.name])
      @link.puts(JSON.generate([row.file, row.name, operations]))
      answer
    rescue Errno::EPIPE
      answer
    end

    # Ends it, however far it is: Ctrl-C does not reach it.
    def stop
      return unless @pid

      kill_group
      end_of_process
    end

    private

    def kill_group
      Process.kill(:KILL, -@pid)
    rescue Errno::ESRCH
      nil # nobody of it is left
    end

    # A program that answers once, and ends.
    def command(operations, warm_up)
      start(@peer.command.call(operations, warm_up))
      answer.tap { stop }
    end

    def start(command)
      return if @pid

      @reason = nil
      @link, other = UNIXSocket.pair
      @errors = Tempfile.create("bench").tap { |file| File.unlink(file.path) }
      command += [other.fileno.to_s] unless @peer.command
      streams = { :in => File::NULL, :out => @peer.command ? other : @errors, :err => @errors, other => other }
      @pid = Process.spawn(@env, *TIED, *@prefix, *command, pgroup: true, **streams)
    ensure
      other&.close
    end

    def answer
      line = read_line
      return JSON.parse(line) if line&.end_with?("\n")

      line.nil? ? { "status" => "hangs", "detail" => @reason } : crash
    ensure
      stop unless line&.end_with?("\n")
    end

    # A line, or what there is of it when the child has ended, or nil when it hangs.
    def read_line
      text = +""
      until text.end_with?("\n")
        return unless answers?

        text << @link.readpartial(65_536)
      end
      text
    rescue EOFError, Errno::ECONNRESET
      text
    end

    # Whether it says something before the time is over, and before it has done nothing for long.
    def answers?
      started = worked = now
      used = nil
      until @link.wait_readable(IDLE / 8.0)
        before = used
        used = times_used
        worked = now if used != before
        @reason = "no end after #{@timeout} s" if now - started > @timeout
        @reason = "no end, and nothing done in #{IDLE} s" if now - worked > IDLE
        return false if @reason
      end
      true
    end

    # A text that shows how much it has computed so far; nothing changes while it waits. It is not idle while it wants
    # to run.
    def times_used
      fields = File.read("/proc/#{@pid}/stat")[/.*\) (.*)/m, 1].split
      fields.first == "R" ? now : fields.values_at(11, 12, 13, 14)
    rescue SystemCallError
      now
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def crash
      status = Process.wait2(@pid).last
      kill_group # what it has started
      @errors.rewind
      lines = @errors.each_line.map(&:strip).reject { |text| text.empty? || text.include?(": warning: ") }
      said = lines.find { |text| text =~ /Error|BUG|Assert|error/ } || lines.first
      said = said&.gsub(%r{\S*/(gems|bench)/}) { "#{Regexp.last_match(1)}/" } # not where they lie here
      @ended = true
      { "status" => "crashes", "detail" => [said, status.to_s.sub(/pid \d+ /, "")].compact.join("; ") }
    end

    def end_of_process
      Process.wait(@pid) unless @ended
      [@link, @errors].each(&:close)
      @ended = @pid = nil
      @warm.clear
    end
  end
end
