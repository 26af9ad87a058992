# frozen_string_literal: true

require "json"
require "rbconfig"
require "tempfile"

module Bench
  # Runs each (row, peer, round) in a process of its own, peers interleaved: A B C A B C.
  class Runner
    # Nothing of Bundler or of the caller's Ruby options may reach a child.
    CLEAN_ENV = { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "BUNDLE_BIN_PATH" => nil,
                  "BUNDLER_SETUP" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil, "HEDDLE_BACKEND" => nil }.freeze
    CHILD = File.join(ROOT, "child.rb")
    YJIT = RbConfig::CONFIG["YJIT_SUPPORT"].to_s.then { |support| support != "" && support != "no" }

    # All samples of a row on a peer, and what went wrong, if anything: "hangs", "crashes", "wrong result".
    Cell = Struct.new(:row, :peer, :samples, :failure, :detail)

    attr_reader :cells, :missing

    def initialize(rows:, peers:, rounds: 1, scale: 1.0, timeout: 60.0, install: true)
      @rows = rows
      @rounds = rounds
      @scale = scale
      @timeout = timeout
      @gems = PeerGems.new(install: install)
      @missing = peers.to_h { |peer| [peer.name, @gems.missing(peer) || peer.prepare&.call] }.compact
      @peers = peers.reject { |peer| @missing.key?(peer.name) }
      @cells = {}
    end

    # Number of child processes that #run will start at most.
    def steps = @rounds * @rows.sum { |row| peers_of(row).size }

    # Runs everything; yields the row and the peer before each child.
    def run
      @rows.each do |row|
        @rounds.times do
          peers_of(row).each do |peer|
            yield row, peer if block_given?
            cell = @cells[[row.name, peer.name]] ||= Cell.new(row, peer, [], nil, nil)
            add_sample(cell) unless cell.failure
          end
        end
      end
      self
    end

    # One child. Returns its answer, a Hash with at least "status" and "detail".
    def measure(row, peer)
      reader, writer = IO.pipe
      errors = Tempfile.create("bench", anonymous: true)
      pid = Process.spawn(env_of(peer), *command(row, peer, writer),
                          :pgroup => true, :in => File::NULL, :out => peer.command ? writer : errors, :err => errors,
                          writer => writer)
      writer.close
      line = read_answer(reader)
      # A child that hangs has to be stopped, one that has answered is on its way out.
      stop(pid) if line == :timeout
      _, status = Process.wait2(pid)
      pid = nil
      answer_from(line, status, errors)
    ensure
      pid&.then { |running| stop(running) } # Ctrl-C leaves nothing behind
      [reader, writer, errors].each { |io| io&.close unless io&.closed? }
    end

    private

    def peers_of(row) = @peers.select { |peer| peer.runs?(row) }

    def add_sample(cell)
      answer = measure(cell.row, cell.peer)
      if answer["status"] == "ok"
        cell.samples << answer
      else
        cell.failure = answer["status"]
        cell.detail = answer["detail"]
      end
    end

    def env_of(peer) = CLEAN_ENV.merge(@gems.env, peer.env)

    def command(row, peer, writer)
      operations = row.operations_at(@scale, peer)
      warmup = row.operations_at(@scale / 10.0, peer)
      return peer.command.call(operations, warmup) if peer.command

      [RbConfig.ruby, *("--yjit" if YJIT), CHILD, row.file, row.name, peer.file, peer.name,
       operations.to_s, warmup.to_s, writer.fileno.to_s]
    end

    # Everything that the child writes until it closes the pipe, or :timeout.
    def read_answer(reader)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + @timeout
      text = +""
      loop do
        left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return :timeout unless left.positive? && reader.wait_readable(left)

        text << reader.readpartial(4096)
      end
    rescue EOFError
      text
    end

    def stop(pid)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      # It has just ended by itself.
    end

    def answer_from(line, status, errors)
      return { "status" => "hangs", "detail" => "no end after #{@timeout} s" } if line == :timeout
      return JSON.parse(line) unless line.empty?

      errors.rewind
      said = errors.each_line.map(&:strip).find { |text| text =~ /Error|BUG|Assert|error/ }
      said = said&.gsub(%r{\S*/(gems|bench)/}) { "#{Regexp.last_match(1)}/" } # not where they lie here
      { "status" => "crashes", "detail" => [said, status.to_s.sub(/pid \d+ /, "")].compact.join("; ") }
    end
  end
end
