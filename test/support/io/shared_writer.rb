# frozen_string_literal: true

module TestSupport
  # Records that several tasks write to one IO. Each says who wrote it, which one it is and how long it is, so that
  # whatever is lost, doubled or mixed shows.
  class SharedWriter
    WRITES = {
      "puts" => ->(io, record) { io.puts(record) },
      "write" => ->(io, record) { io.write(record, "\n") },
      "append" => ->(io, record) { io << "#{record}\n" },
      "print" => ->(io, record) { io.print("#{record}\n") },
      "printf" => ->(io, record) { io.printf("%s\n", record) },
      "puts_and_flush" => ->(io, record) { io.puts(record) || io.flush }
    }.freeze
    SIZES = [10, 60, 700, 4000, 9000, 90_000].freeze
    private_constant :WRITES, :SIZES

    # The records that were written: [task, number].
    attr_reader :done

    def initialize(seed)
      @random = Random.new(seed)
      @done = []
    end

    # Writes a task's records; yields now and then.
    def write(io, task, count)
      count.times do |number|
        write_one(io, task, number)
        yield if @random.rand(3).zero?
      end
    end

    def write_one(io, task, number)
      record = "<#{task}.#{number}.#{"x" * @random.rand(SIZES.sample(random: @random))}>"
      WRITES.values.sample(random: @random).call(io, record)
      @done << [task, number]
    end

    # Reads slowly, and in odd pieces, to the end.
    def read(io)
      random = Random.new(@random.seed)
      text = +""
      loop do
        text << io.readpartial(random.rand(1..9000))
        sleep(0.0005) if random.rand(4).zero?
      end
    rescue EOFError
      text
    end

    # @return [Array] the records that are whole
    def self.records(text) = text.scan(/<(\d+)\.(\d+)\.x*>$/).map { |pair| pair.map(&:to_i) }
  end
end
