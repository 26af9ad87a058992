# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require "tempfile"

module Bench
  # A process that runs rows on one peer (bench/child.rb, or the peer's own program), seen from the runner.
  class Child
    # Nothing of Bundler or of the caller's Ruby options may reach a child.
    CLEAN_ENV = { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "BUNDLE_BIN_PATH" => nil,
                  "BUNDLER_SETUP" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil, "HEDDLE_BACKEND" => nil }.freeze
    SCRIPT = File.join(ROOT, "child.rb")
    YJIT = RbConfig::CONFIG["YJIT_SUPPORT"].to_s.then { |support| support != "" && support != "no" }

    def initialize(peer, env:, timeout:, yjit:)
      @peer = peer
      @env = CLEAN_ENV.merge(env, peer.env)
      @timeout = timeout
      @yjit = yjit
      @warm = []
    end

    # Does one row, after a smaller number of operations the first time. Returns the answer, a Hash with at least
    # "status" and "detail".
    def measure(row, operations, warm_up)
      return command(operations, warm_up) if @peer.command

      unless @warm.include?(row.name)
        failed = ask(row, warm_up).then { |answer| answer if %w[hangs crashes].include?(answer["status"]) }
        return failed if failed

        @warm << row.name
      end
      ask(row, operations)
    end

    # Does one row without more ado.
    def ask(row, operations)
      start([RbConfig.ruby, *("--#{"disable-" unless @yjit}yjit" if YJIT), SCRIPT, row.file, @peer.file, @peer.name])
      @link.puts(JSON.generate([row.name, operations]))
      answer
    rescue Errno::EPIPE
      answer
    end

    # Ends it, however far it is: Ctrl-C does not reach it.
    def stop
      return unless @pid

      begin
        Process.kill(:KILL, -@pid)
      rescue Errno::ESRCH
        # It has just ended by itself.
      end
      end_of_process
    end

    private

    # A program that answers once, and ends.
    def command(operations, warm_up)
      start(@peer.command.call(operations, warm_up))
      answer.tap { stop }
    end

    def start(command)
      return if @pid

      @link, other = UNIXSocket.pair
      @errors = Tempfile.create("bench").tap { |file| File.unlink(file.path) }
      command += [other.fileno.to_s] unless @peer.command
      @pid = Process.spawn(@env, *command, :pgroup => true, :in => File::NULL, :err => @errors,
                                           :out => @peer.command ? other : @errors, other => other)
    ensure
      other&.close
    end

    def answer
      line = read_line
      return JSON.parse(line) if line&.end_with?("\n")

      line.nil? ? { "status" => "hangs", "detail" => "no end after #{@timeout} s" } : crash
    ensure
      stop unless line&.end_with?("\n")
    end

    # A line, or what there is of it when the child has ended, or nil when there is no time left.
    def read_line
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + @timeout
      text = +""
      until text.end_with?("\n")
        left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return unless left.positive? && @link.wait_readable(left)

        text << @link.readpartial(65_536)
      end
      text
    rescue EOFError, Errno::ECONNRESET
      text
    end

    def crash
      status = Process.wait2(@pid).last
      @errors.rewind
      said = @errors.each_line.map(&:strip).find { |text| text =~ /Error|BUG|Assert|error/ }
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
