# frozen_string_literal: true

# bin/test: takes 3 s, 0.7 of a core

require_relative "../../test_helper"

# In a task, an operation makes at most one object more than the blocking call of plain Ruby does.
contract "ObjectsOfOperations", both_ways: true do
  heddle_only "this compares with plain Ruby"

  few = 50
  line = "#{"text " * 10}\n"

  # Name => from two ends to a Proc that writes, if need be, and makes one operation.
  operations = {
    "write and readpartial" => ->(near, far) { -> { near.write(line) && far.readpartial(100) } },
    "write and readpartial into a string" => lambda do |near, far|
      buffer = String.new(capacity: 200)
      -> { near.write(line) && far.readpartial(100, buffer) }
    end,
    "syswrite and sysread" => ->(near, far) { -> { near.syswrite(line) && far.sysread(100) } },
    "write and read" => ->(near, far) { -> { near.write(line) && far.read(line.bytesize) } },
    "puts and gets" => ->(near, far) { -> { near.puts(line) || far.gets } },
    "write and readline" => ->(near, far) { -> { near.write(line) && far.readline } },
    "write and getbyte" => ->(near, far) { -> { near.write("x") && far.getbyte } },
    "send and recv" => ->(near, far) { -> { near.send(line, 0) && far.recv(100) } },
    "write_nonblock and read_nonblock" => ->(near, far) { -> { near.write_nonblock(line) && far.read_nonblock(100) } },
    "wait_readable" => ->(near, far) { near.write("x") && -> { far.wait_readable } },
    "select" => ->(near, far) { near.write("x") && -> { IO.select([far], nil, nil, 1) } }
  }
  others = {
    "accept, connect and close" => lambda do |_, _|
      server = keep(TCPServer.new("127.0.0.1", 0))
      -> { TCPSocket.new("127.0.0.1", server.addr[1]).tap { server.accept.close }.close }
    end,
    "a pipe" => ->(_, _) { -> { IO.pipe.each(&:close) } },
    "a file" => ->(_, _) { -> { File.read(__FILE__) } },
    "sleep" => ->(_, _) { -> { sleep(0) } },
    "a Queue" => lambda do |_, _|
      queue = Thread::Queue.new
      -> { (queue << 1) && queue.pop }
    end,
    "a Mutex" => lambda do |_, _|
      lock = Thread::Mutex.new
      -> { lock.synchronize { nil } }
    end
  }

  # The objects that an operation makes. The smallest number counts, for something else may happen as well.
  define_method(:objects_of) do |operation|
    counts = Array.new(3) do
      before = GC.stat(:total_allocated_objects)
      few.times { operation.call }
      GC.stat(:total_allocated_objects) - before
    end
    counts.min.fdiv(few)
  end

  # As before, while another task is ready all the time, so that transfers may share system calls.
  define_method(:objects_in_a_task) do |operation|
    reactor do
      over = false
      other = go { sleep(0) until over }
      objects_of(operation)
    ensure
      over = true
      other.value
    end
  end

  # A close in a task of 3.4 goes by the scheduler, for which Ruby makes objects.
  define_method(:for_closes) do |name|
    RUBY_VERSION.start_with?("3.4") ? { "a pipe" => 2, "accept, connect and close" => 5 }.fetch(name, 0) : 0
  end

  { socket_pair: operations, pipe: operations.except("send and recv"), tcp_pair: others }.each do |ends, cases|
    cases.each do |name, operation|
      define_method("test_#{name.tr(" ", "_")}_on_#{ends}") do
        far, near = reactor { send(ends) }
        near.sync = true
        work = instance_exec(near, far, &operation)
        plain = objects_of(work)

        assert_operator(objects_in_a_task(work), :<=, plain + 1.1 + for_closes(name))
      end
    end
  end
end
