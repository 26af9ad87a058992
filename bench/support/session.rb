# frozen_string_literal: true

require_relative "registry"
require_relative "options"
require_relative "runner"
require_relative "statistics"
require_relative "environment"
require_relative "report"

begin
  require "ruby-progressbar"
  require "terminal-table"
rescue LoadError => e
  abort("#{e.message}: the tables need the gems of the Gemfile; bin/setup installs them, bin/ruby finds them")
end

module Bench
  # Runs what the options say, and shows how far it is.
  class Session
    # Seconds between two lines where the output is no terminal.
    PAUSE = 15

    # @param command [String] what people have typed
    # @param talkative [Boolean] whether to say how far it is where the output is no terminal, too
    def initialize(options, command: "bench/run.rb", talkative: false)
      @options = options
      @command = command
      @talkative = talkative
      @load = Environment.load
    end

    # @return [Report]
    def run
      runner = Runner.new(rows: @options.rows, peers: @options.peers, rounds: @options.rounds, turns: @options.turns,
                          scale: @options.scale, timeout: @options.timeout, seconds: @options.seconds,
                          install: @options.install, yjit: @options.yjit, keep: @options.keep,
                          dear_calls: @options.dear_calls)
      @started = @said = now
      bar = ProgressBar.create(total: runner.steps, output: $stderr, format: "%c/%C |%B| %a  %t", title: "") if tty?
      runner.run { |cell| show(bar, cell) }
      bar&.finish
      facts = Environment.describe(runner, @options, command: @command, load: @load, seconds: now - @started)
      Report.new(@options.rows, runner, facts)
    end

    private

    def tty? = $stderr.tty?

    def show(bar, cell)
      title = "round #{cell.rounds.size}, #{cell.row.name}: #{cell.peer.name}"
      if bar
        bar.title = title.ljust(40)
        bar.increment unless bar.finished?
      elsif @talkative && now - @said > PAUSE
        @said = now
        warn("after #{(now - @started).round} s: #{title}")
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
