# frozen_string_literal: true

require "support/io/shared_writer"

module Fuzz
  # Several tasks write to one IO, buffered or not, to a slow reader. A task that gets an exception may leave a part of
  # what it was writing, but nothing of the others is lost, doubled or mixed.
  class SharedWriters < StreamActor
    private

    def perform
      reader, writer = stream
      writer.sync = chance(0.4)
      shared = TestSupport::SharedWriter.new(number(0..1_000_000))
      reading = go("reads") { shared.read(reader) }
      writing = Array.new(number(2..8)) { |task| go("writes") { write(shared, writer, task) } }
      finish(*writing)
      writer.close
      finish(reading)
      compare(shared, TestSupport::SharedWriter.records(reading.value))
    ensure
      reader.close # before the writer, which would wait for room to write the rest of its buffer
    end

    def write(shared, writer, task)
      steps(20).times do |number|
        raised_into(0.1) { shared.write_one(writer, task, number) }
        pause if chance(0.3)
      end
    end

    def compare(shared, records)
      lost = shared.done - records
      check(lost.empty?) { "lost or mixed: #{lost.first(5)} of #{shared.done.size}" }
      check(records.uniq == records, "records came twice")
      records.group_by(&:first).each_value { |own| check(own.sort == own, "the records of a task changed places") }
    end
  end
end
