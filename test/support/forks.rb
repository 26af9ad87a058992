# frozen_string_literal: true

module TestSupport
  # Children for the tests of forks.
  module Forks
    # Runs the block in a forked child; returns what it printed. The child ends with exit!.
    def in_child
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        result = begin
          yield.inspect
        rescue Exception => e
          "#{e.class}: #{e.message} #{e.backtrace&.first(3)}"
        end
        writer.write(result)
        exit!(0)
      end
      writer.close
      reader.read.tap { Process.wait(pid) }
    ensure
      [reader, writer].each { |io| io&.close }
    end
  end
end
