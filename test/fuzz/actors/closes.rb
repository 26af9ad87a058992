# frozen_string_literal: true

require_relative "streams"

module Fuzz
  # Waiters on an IO that is closed: each ends with IOError, none hangs, and the peer sees the end.
  class Close < StreamActor
    READS = [
      ->(io) { io.read }, ->(io) { io.gets }, ->(io) { io.readpartial(10) }, ->(io) { io.wait_readable },
      ->(io) { IO.select([io]) }, ->(io) { IO.select([io], nil, [io], 60) }, ->(io) { io.getc },
      ->(io) { io.wait_readable(60) }
    ].freeze
    WRITES = [
      ->(io) { io.syswrite("x" * 2_000_000) }, ->(io) { io.wait_writable }, ->(io) { IO.select(nil, [io]) },
      ->(io) { loop { io.syswrite("x" * 65_536) } }
    ].freeze

    private

    def perform
      steps(12).times { chance(0.6) ? close_reader : close_writer }
    end

    def close_reader
      reader, writer = stream
      waiting = waiters(reader, READS)
      pause
      close(reader)
      finish(*waiting)
      finish(go("notices") { write_until_refused(writer) })
    end

    def close_writer
      reader, writer = stream
      filled = fill(writer)
      waiting = waiters(writer, WRITES)
      pause
      writer.is_a?(BasicSocket) && chance(0.3) && waiting.empty? ? writer.close_write : close(writer)
      finish(*waiting)
      got = drain(reader)
      check(got >= filled) { "#{got} of #{filled} bytes came" }
    end

    def waiters(io, operations)
      Array.new(number(0..4)) do
        operation = pick(*operations)
        go("waits") do
          operation.call(io)
          raise Failure, "close: a wait returned though nothing came" unless WRITES.include?(operation)
        rescue IOError => e
          check(!e.is_a?(EOFError), "a waiter got EOFError for a closed IO")
        end
      end
    end

    def close(io)
      case pick(:here, :task, :thread, :block)
      when :here then io.close
      when :task then finish(go("closes") { io.close })
      when :thread then thread { io.close }.join
      else IO.for_fd(io.fileno, autoclose: false).then { io.close }
      end
      check(io.closed?, "it is not closed")
    end

    def fill(writer)
      total = 0
      while (count = writer.write_nonblock("x" * 65_536, exception: false)) != :wait_writable
        total += count
      end
      total
    end

    def drain(reader)
      total = 0
      loop { total += reader.readpartial(100_000).bytesize }
    rescue EOFError, Errno::ECONNRESET
      total
    end

    # At once, or when the child of a fork has ended that has the descriptor too.
    def write_until_refused(writer)
      loop { writer.write("x" * 100_000) && sleep(0.001) }
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end
  end

  # A descriptor number that is closed and used again at once: what waited for the old one gets nothing of the new.
  class Reuse < StreamActor
    private

    def perform
      steps(25).times do
        reader, writer = stream
        got = nil
        waiting = go("waits") do
          got = pick(1, 2) == 1 ? reader.readpartial(10) : IO.select([reader])
        rescue IOError => e
          got = e
        end
        pause
        chance(0.5) ? [reader, writer].each(&:close) : thread { reader.close }.join
        next_use
        finish(waiting)
        check(got.is_a?(IOError)) { "the waiter on a closed IO got #{got.inspect}" }
      end
    end

    def next_use
      reader, writer = stream
      word = number(0..1_000_000_000).to_s
      reading = go("reads the new one") { check(reader.readpartial(20) == word, "the new IO gave something else") }
      pause
      writer.write(word)
      finish(reading)
    end
  end

  # One direction of a socket is shut down under its waiters, who close the socket and open another one at once: that
  # one is whole.
  class HalfClose < StreamActor
    SIDES = {
      close_read: [->(io) { io.read(10) }, ->(io) { io.gets }, ->(io) { io.recv(10) },
                   ->(io) { io.wait_readable && nil }]
    }.freeze

    private

    def perform
      steps(10).times do
        one, = sockets
        side = pick(*SIDES.keys)
        others = number(0..2)
        waiting = go("waits") { wait_and_replace(one, pick(*SIDES[side])) }
        waiting_too = Array.new(others) { go("waits, too") { outcome_of { pick(*SIDES[side]).call(one) } } }
        pause
        one.public_send(side) unless one.closed?
        finish(waiting, *waiting_too)
        one.close
      end
    end

    def wait_and_replace(one, wait)
      got = outcome_of { wait.call(one) }
      check([nil, Errno::EPIPE].include?(got)) { "a waiter on a socket that is shut down got #{got.inspect}" }
      one.close
      from, to = sockets
      word = number(0..1_000_000_000).to_s
      pause
      from.write(word)
      check(to.readpartial(20) == word, "the new socket gave something else")
    end

    def outcome_of
      yield
    rescue Errno::EPIPE, Errno::EBADF, IOError => e
      e.class
    end
  end

  # An IO and its twin with the same descriptor, which is closed, collected or left alone: nobody is disturbed.
  class Twins < StreamActor
    private

    def perform
      steps(10).times do
        reader, writer = pipe
        sent = bytes(2_000)
        reading = go("reads") { same(reader.read, sent) }
        twins = Array.new(number(1..5)) { IO.for_fd(reader.fileno, autoclose: false) }
        waiting = go("waits on the twin") { wait_for(twins.last) } if chance(0.5)
        pause
        twins.each(&:close) if waiting || chance(0.3)
        twins = nil
        GC.start(full_mark: false) if chance(0.1)
        pause
        write_all(writer, sent)
        writer.close
        finish(reading, *waiting)
        reader.close
      end
    end

    def wait_for(twin)
      twin.wait_readable
    rescue IOError
      nil
    end
  end

  # IO#reopen under a waiter.
  class Reopen < StreamActor
    private

    def perform
      steps(8).times do
        reader, = pipe
        other, into = pipe
        got = nil
        waiting = go("waits") do
          got = reader.wait_readable || :nothing
        rescue IOError => e
          got = e
        end
        sleep(0)
        reader.reopen(other)
        finish(waiting)
        check(got.is_a?(IOError)) { "the waiter on a reopened IO got #{got.inspect}" }
        into.write("new")
        check(reader.readpartial(10) == "new", "the reopened IO does not read")
      end
    end
  end
end
