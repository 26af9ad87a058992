# frozen_string_literal: true

require_relative "../../test_helper"

# Tasks that read lines from one IO: a line may be split between two of them, as with threads, but no byte is lost or
# comes twice. Bytes that one has left in Ruby's buffer are not written over by another that has waited meanwhile. Plain
# threads lose bytes.
contract "SharedReader", both_ways: true do
  on_streams "gets in several tasks", TestSupport::Streams::PLAIN do |reader, writer|
    heddle_only("threads lose bytes")
    Heddle.share_io(reader)
    sent = Array.new(3000) { |i| "line #{i} #{"x" * (i % 50)}\n" }
    got = Array.new(4) { +"" }
    readers = got.map do |text|
      go do
        while (line = reader.gets)
          text << line
          sleep(0) if line.hash.even?
        end
      end
    end
    sent.each_slice(7) { |lines| writer.write(lines.join) && sleep(0) }
    writer.close
    readers.each(&:value)

    assert_equal(sent.join.each_char.tally, got.join.each_char.tally)
  end

  # (A read of a file lets the others run first, when they have not run for long.)
  def test_gets_of_a_file_in_several_tasks
    heddle_only("threads lose bytes")
    sent = Array.new(40_000) { |i| "line #{i}\n" }.join
    path = File.join(tempdir, "lines")
    File.write(path, sent)
    got = Array.new(6) { +"" }
    reactor do
      File.open(path) do |file|
        got.map do |text|
          go do
            while (line = file.gets)
              text << line
              99.times { |i| i.to_s }
            end
          end
        end.each(&:value)
      end
    end

    assert_equal(sent.each_char.tally, got.join.each_char.tally)
  end
end
