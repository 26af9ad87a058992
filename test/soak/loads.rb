# frozen_string_literal: true

require "socket"
require "tempfile"
require "timeout"

module Soak
  # What the soak does all the time. Each method is one operation, which leaves nothing open.
  class Loads
    ALL = %i[connection closed_pipe timeout cancel late_cancel queue sleep_a_little file select enumerator scope
             thread resolve process].freeze
    # For the test of the soak itself.
    LEAKS = %i[leak leak_memory].freeze
    # These take long, or much of the machine: a pause after each, in seconds.
    PAUSES = { leak: 0.01, leak_memory: 0.01, thread: 0.01, resolve: 0.02, process: 0.1 }.freeze

    def initialize
      @server = TCPServer.new("127.0.0.1", 0)
      @file = Tempfile.new("heddle-soak")
      @file.write("0123456789" * 1000)
      @file.flush
      @serving = Heddle.spawn(name: "server") { serve }
    end

    def close
      @serving.cancel.wait
      @server.close
      @file.close!
      @leaked&.flatten&.each(&:close)
      @filled&.clear
    end

    # Does one operation. The tasks that it starts end with it.
    def call(name)
      Heddle.run { __send__(name) }
      sleep(PAUSES.fetch(name, 0))
    end

    private

    def check(right)
      raise "a wrong result in #{caller_locations(1, 1).first.label}" unless right
    end

    def serve
      loop do
        client = @server.accept
        Heddle.spawn do
          while (line = client.gets)
            client.write(line.upcase)
          end
        ensure
          client.close
        end
      end
    end

    def leak = (@leaked ||= []) << IO.pipe
    def leak_memory = (@filled ||= []) << ("x" * 200_000)

    def connection
      socket = TCPSocket.new("127.0.0.1", @server.addr[1])
      socket.timeout = 10
      3.times { |i| check(socket.write("line #{i}\n") && socket.gets == "LINE #{i}\n") }
      socket.shutdown(:WR)
      check(socket.read == "")
    ensure
      socket&.close
    end

    def closed_pipe
      reader, writer = IO.pipe
      waiting = Array.new(2) { Heddle.spawn { read_until_closed(reader) } }
      sleep(0)
      reader.close
      check(waiting.all? { |task| task.value == :closed })
    ensure
      reader&.close
      writer&.close
    end

    def read_until_closed(reader)
      reader.readpartial(10)
    rescue IOError
      :closed
    end

    def timeout
      check(Timeout.timeout(60) { sleep(0) || true })
      Timeout.timeout(0.0005) { Thread::Queue.new.pop }
    rescue Timeout::Error
      nil
    end

    def cancel
      IO.pipe do |reader, _writer|
        waits = [-> { sleep }, -> { reader.read }, -> { IO.select([reader], nil, nil, 60) }]
        tasks = waits.map { |wait| Heddle.spawn(&wait) }
        tasks.each(&:cancel).each(&:wait)
        check(tasks.all?(&:cancelled?))
      end
    end

    def late_cancel
      queue = Thread::Queue.new
      task = Heddle.spawn { queue.pop }
      queue << 1
      task.cancel
      check(task.value == 1)
    end

    def queue
      queue = Thread::SizedQueue.new(2)
      putting = Heddle.spawn { 10.times { |i| queue.push(i, timeout: 60) } }
      check(Array.new(10) { queue.pop(timeout: 60) } == (0..9).to_a)
      putting.wait
    end

    def sleep_a_little = sleep(0.0005)

    def file
      check(@file.pread(100, rand(1..9) * 1000) == "0123456789" * 10)
      check(File.binread(@file.path).size == 10_000)
    end

    def select
      UNIXSocket.pair.then do |a, b|
        writing = Heddle.spawn { b.write("x") }
        check(IO.select([a], nil, nil, 60) == [[a], [], []])
        writing.wait
      ensure
        a.close
        b.close
      end
    end

    def enumerator
      IO.pipe do |reader, writer|
        bytes = Enumerator.new { |yielder| loop { yielder << reader.readpartial(1) } }
        writing = Heddle.spawn { writer.write("ab") }
        check(bytes.next == "a" && bytes.next == "b")
        writing.wait
      end
    end

    def scope
      Heddle.run do
        Heddle.spawn { sleep }
        Heddle.spawn { raise ArgumentError }
        sleep
      end
    rescue ArgumentError
      nil
    end

    def thread
      queue = Thread::Queue.new
      worker = Thread.new { queue.pop * 2 }
      queue << 21
      check(worker.value == 42)
    end

    def resolve = check(Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).any?)

    def process
      check(system("exit 0"))
      check(`echo x` == "x\n")
    end
  end
end
