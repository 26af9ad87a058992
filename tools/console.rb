# frozen_string_literal: true

module Tools
  # Progress on stderr: a moving line on a terminal, plain lines elsewhere.
  # Standard output stays free for what the program itself prints.
  class Console
    FRAMES = %w[| / - \\].freeze
    PLAIN_EVERY = 30 # seconds

    def initialize(out: $stderr)
      @out = out
      @moving = out.tty? && ENV["TERM"] != "dumb"
    end

    def say(line)
      @out.puts("heddle: #{line}")
    end

    # Shows that a step runs for as long as its block does. The block is given
    # a procedure to call with every line of output.
    def step(title, takes: nil)
      started = now
      last_line = +""
      say("#{title}#{" (#{takes})" if takes} ...") unless @moving
      ticker = Thread.new { tick(title, takes, started, last_line) }
      result = yield(->(line) { last_line.replace(line) })
      finish(ticker, "#{title}: done in #{clock(started)}")
      result
    rescue Exception # rubocop:disable Lint/RescueException -- the line must end well whatever ends the step
      finish(ticker, "#{title}: stopped after #{clock(started)}")
      raise
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def clock(started)
      format("%d:%02d", *(now - started).round.divmod(60))
    end

    def tick(title, takes, started, last_line)
      (1..).each do |turn|
        sleep(@moving ? 0.2 : PLAIN_EVERY)
        detail = last_line.strip
        if @moving
          text = "#{FRAMES[turn % 4]} #{title}  #{clock(started)}#{" (#{takes})" if takes}  #{detail}"
          @out.print("\r\e[K#{text[0, width - 1]}")
        else
          say("  #{title}: #{clock(started)} so far, #{detail[0, 60]}")
        end
      end
    end

    def finish(ticker, text)
      ticker&.kill&.join
      @out.print("\r\e[K") if @moving
      say(text)
    end

    def width
      require "io/console"
      columns = @out.winsize[1]
      columns.positive? ? columns : 80
    rescue SystemCallError
      80
    end
  end
end
