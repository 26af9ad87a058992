# frozen_string_literal: true

require "io/nonblock"
require_relative "../../test_helper"
require "support/io/shared_writer"

# Tasks that write to one IO, as they do to $stdout or to a log, lose nothing, double nothing and do not mix their
# lines, though one waits in the middle of writing Ruby's buffer or its own string (the reader is slow).
#
# Plain threads fail here: without a lock of its own an IO is right only for short lines.
contract "SharedWriter", both_ways: true do
  seed = Random.new_seed % 10_000

  %w[pipe unix].product([true, false], [true, false]) do |kind, sync, nonblock|
    name = "#{sync ? "sync" : "buffered"}_#{"blocking_" unless nonblock}#{kind}"

    define_method("test_many_tasks_write_to_one_#{name}") do
      heddle_only("the lines mix")
      shared = TestSupport::SharedWriter.new(seed)
      text = reactor do
        reader, writer = shared_pair(kind, sync, nonblock)
        reading = go { shared.read(reader) }
        Array.new(12) { |task| go { shared.write(writer, task, 20) { sleep(0) } } }.each(&:value)
        writer.close
        reading.value
      end

      assert_equal(240, text.count("\n"), "seed #{seed}")
      records = TestSupport::SharedWriter.records(text)

      assert_equal(shared.done.sort, records.sort, "seed #{seed}")
      records.group_by(&:first).each_value { |own| assert_equal(own.sort, own, "seed #{seed}") }
    end

    # The record of a task that gets an exception may be there in part, or not at all; every other one is there once.
    define_method("test_a_struck_writer_to_a_#{name}_loses_nothing_of_the_others") do
      heddle_only("the lines mix")
      shared = TestSupport::SharedWriter.new(seed)
      random = Random.new(seed)
      text = reactor do
        reader, writer = shared_pair(kind, sync, nonblock)
        reading = go { shared.read(reader) }
        writers = Array.new(12) do |task|
          go { raised_into(random.rand(0.001..0.03), task) { shared.write(writer, task, 20) { sleep(0) } } }
        end
        writers.each(&:value)
        writer.close
        reading.value
      end
      records = TestSupport::SharedWriter.records(text)

      assert_empty(shared.done - records, "seed #{seed}")
      assert_equal(records.uniq, records, "seed #{seed}")
    end
  end

  # The content of the buffer is written when the process ends, whichever way it ends.
  {
    "returns" => "", "exits" => "exit(3)", "fails" => 'raise("failed")', "is_killed" => "Process.kill(:TERM, 0); sleep"
  }.each do |name, ending|
    define_method("test_standard_output_of_a_process_that_#{name}") do
      heddle_only("it is about Heddle.run")
      reader, writer = pipe
      writer.nonblock = false # as a shell gives it: at its end Ruby writes the buffer once, and does not wait
      list = File.join(tempdir, "done")
      pid = spawn(*ruby_command, "-rheddle", "-e", program(list, ending), out: writer, err: File::NULL, pgroup: true)
      writer.close
      text = +""
      while (part = reader.read(3000))
        text << part
        sleep(0.001)
      end
      Process.wait(pid)
      done = Marshal.load(File.binread(list)) # rubocop:disable Security/MarshalLoad -- its own
      records = TestSupport::SharedWriter.records(text)

      assert_empty(done - records)
      assert_equal(records.uniq, records)
      assert_equal(600, records.size) if ending.empty?
    end
  end

  # The buffer is still full when the error is reported: nothing would wake a writer that waited for room.
  def test_an_error_in_the_midst_of_a_string
    reactor do
      one, = socket_pair
      writing = go { one.write("x" * 2_000_000) }
      settle
      one.close_write

      assert_instance_of(Errno::EPIPE, writing.failure)
    end
  end

  def test_syswrite_returns_a_part
    reactor do
      _reader, writer = pipe

      assert_equal(65_536, writer.syswrite("x" * 100_000))
    end
  end

  def test_write_of_an_io_buffer_returns_a_part
    reactor do
      _reader, writer = pipe

      assert_equal(65_536, IO::Buffer.for("x" * 100_000) { |buffer| buffer.write(writer, 0) })
    end
  end

  private

  # Twenty tasks write to the standard output, and then it ends in that way; the list says what they have written.
  def program(list, ending)
    <<~RUBY
      done = []
      at_exit { File.binwrite(#{list.dump}, Marshal.dump(done)) }
      trap(:TERM) { exit(4) }
      Heddle.run(backend: #{backend.dump}) do
        20.times do |task|
          Heddle.spawn do
            30.times do |number|
              puts("<\#{task}.\#{number}.\#{"x" * (number * 40)}>")
              done << [task, number]
            end
          end
        end
        sleep(0.05) && #{ending.empty? ? "nil" : "(#{ending})"}
      end
    RUBY
  end

  def shared_pair(kind, sync, nonblock)
    stream_pair(kind).each { |io| io.binmode.nonblock = nonblock }.tap { |_, writer| writer.sync = sync }
  end

  # Every fourth goes on undisturbed; the others end by a timeout, a Fiber#raise or a cancel.
  def raised_into(seconds, number, &)
    case number % 4
    when 0 then yield
    when 1 then Timeout.timeout(seconds, &)
    when 2 then raise_later(seconds) { |fiber| fiber.raise(Timeout::Error) } && yield
    else raise_later(seconds) { |fiber| Fiber.scheduler.interrupt(fiber, Heddle::Cancelled.new) } && yield
    end
  rescue Timeout::Error, Heddle::Cancelled
    nil
  end

  def raise_later(seconds)
    fiber = Fiber.current
    go do
      sleep(seconds)
      yield fiber if fiber.alive?
    rescue FiberError
      nil # it has ended, or was not waiting
    end
  end
end
