# frozen_string_literal: true

module Heddle
  module Demo
    # Shows how far the demo is: a bar that redraws itself on a terminal, else a line for each step.
    class Progress
      WIDTH = 20

      # @param steps [Integer] how many there will be
      # @param out [IO]
      def initialize(steps, out:)
        @steps = steps
        @out = out
        @done = 0
      end

      # Shows what is going on while the block runs.
      # @param text [String]
      # @return [Object] what the block returns
      def step(text)
        show(text)
        yield.tap { @done += 1 }
      end

      # Takes the bar away.
      # @return [void]
      def clear
        @out.print("\r\e[K") if @out.tty?
      end

      private

      def show(text)
        bar = ("#" * (WIDTH * @done / @steps)).ljust(WIDTH, ".")
        line = format("[%s] %2d/%d  %s", bar, @done + 1, @steps, text)
        @out.tty? ? @out.print("\r\e[K#{line}") : @out.puts(line)
        @out.flush
      end
    end
  end
end
