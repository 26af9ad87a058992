# frozen_string_literal: true

# bin/test: takes 5 s, 0.6 of a core

require_relative "../test_helper"
require "support/clients"

# Ruby's Logger, to which all tasks write. Its lines must be whole, and those of a task in their order.
contract "LoggerOfAll" do
  extend TestSupport::Clients

  client "logger", own: true

  # Some are longer than a pipe is wide.
  def write_all(logger)
    all_at_once(50) do |task|
      40.times do |number|
        logger.info("<#{task}.#{number}.#{"x" * (number == task ? 100_000 : number * 10)}>")
        sleep(0) if number % 7 == task % 7
      end
    end
  end

  def assert_whole(text)
    lines = text.lines.grep_v(/\A#/) # (a new file begins with a comment)

    assert_empty(lines.grep_v(/\AI, \[.*\] +INFO -- : <\d+\.\d+\.x*>\n\z/))
    seen = lines.map { |line| line.match(/<(\d+)\.(\d+)\./).captures.map(&:to_i) }.group_by(&:first)

    assert_equal([*0...50], seen.keys.sort)
    assert_equal([[*0...40]], seen.values.map { |pairs| pairs.map(&:last) }.uniq)
  end

  def test_one_file
    path = File.join(tempdir, "log")
    reactor do
      logger = Logger.new(path)
      write_all(logger)
      logger.close
    end

    assert_whole(File.read(path))
  end

  # Loggers of their own, one file: it is opened for appending.
  def test_a_logger_for_each_task
    path = File.join(tempdir, "log")
    reactor do
      all_at_once(50) do |task|
        logger = Logger.new(path)
        40.times { |number| logger.info("<#{task}.#{number}.>") }
        logger.close
      end
    end

    assert_whole(File.read(path))
  end

  def test_files_that_are_full
    folder = tempdir
    reactor do
      logger = Logger.new(File.join(folder, "log"), 1000, 200_000)
      write_all(logger)
      logger.close
    end
    files = Dir.children(folder).sort_by { |name| -Integer(name[/\d+\z/] || -1) } # log.0 is older than log

    assert_operator(files.size, :>, 5)
    assert_whole(files.map { |name| File.read(File.join(folder, name)) }.join)
  end

  # Who writes to a pipe that is full waits, and the others with it, but not the rest of the program.
  def test_a_pipe_that_is_read_slowly
    from, to = pipe
    reactor do
      reading = go { assert_others_run { read_slowly(from) } }
      logger = Logger.new(to)
      write_all(logger)
      logger.close

      assert_whole(reading.value)
    end
  end

  def read_slowly(from)
    text = +""
    while (part = from.read(500_000))
      text << part
      sleep(0.02)
    end
    text
  end
end
