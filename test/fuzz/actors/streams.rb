# frozen_string_literal: true

module Fuzz
  # What the actors with streams share.
  class StreamActor < Actor
    private

    def pipe = new_pipe.each { |io| keep(io.binmode) }

    # Two connected ends of some kind.
    def stream = chance(0.4) ? pipe : sockets

    def sockets
      case pick(:unix, :socket, :tcp)
      when :unix then UNIXSocket.pair.each { |io| keep(io) }
      when :socket then Socket.pair(:UNIX, :STREAM, 0).each { |io| keep(io) }
      else tcp_pair
      end
    end

    def tcp_pair
      server = TCPServer.new("127.0.0.1", 0)
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      [keep(server.accept), client]
    ensure
      server&.close
    end

    # A write of what fits, which is done or not done when it is interrupted.
    def write_some(io, text)
      case pick(:syswrite, :nonblock, :select)
      when :syswrite then io.syswrite(text)
      when :select
        IO.select(nil, [io])
        0
      else
        written = io.write_nonblock(text, exception: false)
        written == :wait_writable ? (io.wait_writable && 0) : written
      end
    end

    def write_all(io, text)
      until text.empty?
        pause
        part = text.byteslice(0, number(1..70_000))
        if chance(0.3)
          io.write(part)
          written = part.bytesize
        else
          written = raised_into(0.3) { write_some(io, part) }.then { |state, count| state == :done ? count : 0 }
        end
        text = text.byteslice(written..)
      end
    end

    # A read of what is there, which loses nothing when it is interrupted. nil at the end.
    def read_some(io)
      most = number(1..70_000)
      case pick(:readpartial, :nonblock, :wait, :select, io.is_a?(BasicSocket) ? :recv : :sysread)
      when :readpartial then io.readpartial(most)
      when :sysread then io.sysread(most)
      when :recv then io.recv(most).then { |text| text if text && !text.empty? }
      when :wait
        check(io.wait_readable, "wait_readable without a limit returned nothing")
        ""
      when :select
        check(IO.select([io], nil, nil) == [[io], [], []], "IO.select returned something else")
        ""
      else
        text = io.read_nonblock(most, exception: false)
        text == :wait_readable ? "" : text
      end
    rescue EOFError
      nil
    end

    def read_all(io)
      got = +""
      loop do
        pause
        state, text = raised_into(0.3) { read_some(io) }
        next if state == :raised
        return got unless text

        got << text
      end
    end

    # A task that does it.
    def write_and_close(writer, text)
      go("writes") do
        write_all(writer, text)
        writer.close
      end
    end

    def same(got, sent)
      check(got == sent) { "#{got.bytesize} bytes came of #{sent.bytesize}, or others" }
    end
  end

  # One writer, one reader: all bytes, in order, and then the end.
  class Stream < StreamActor
    private

    def perform
      reader, writer = stream
      sent = bytes(400_000)
      writing = write_and_close(writer, sent)
      same(read_all(reader), sent)
      finish(writing)
    end
  end

  # Both directions of one socket at the same time.
  class Duplex < StreamActor
    private

    def perform
      ends = sockets
      sent = [bytes(200_000), bytes(200_000)]
      work = ends.each_with_index.flat_map do |socket, index|
        [go("writes") { write_all(socket, sent[index]).then { socket.close_write } },
         go("reads") { same(read_all(socket), sent[1 - index]) }]
      end
      finish(*work)
    end
  end

  # Several readers of one stream: each byte comes to exactly one.
  class SharedReaders < StreamActor
    private

    def perform
      reader, writer = stream
      sent = bytes(100_000)
      got = Array.new(number(2..5)) { +"" }
      reading = got.map { |text| go("reads") { text << read_all(reader) } }
      write_all(writer, sent)
      writer.close
      finish(*reading)
      check(got.sum(&:bytesize) == sent.bytesize, "bytes were lost or came twice")
      check(got.sum { |text| text.sum(64) } == sent.sum(64), "other bytes came")
    end
  end

  # Lines through the buffered methods.
  class Lines < StreamActor
    private

    def perform
      reader, writer = stream
      sent = Array.new(steps(200)) { "#{"x" * number(0..300)}#{number(0..9)}\n" }
      writing = go("writes") do
        writer.sync = chance(0.7)
        sent.each do |line|
          pause if chance(0.2)
          chance(0.5) ? writer.puts(line) : writer.print(line[0..2], line[3..])
        end
        writer.close
      end
      got = read_lines(reader)
      check(got == sent) { "#{got.size} of #{sent.size} lines came on a #{reader.class}" }
      finish(writing)
    end

    def read_lines(reader)
      got = []
      while (line = pick(:gets, :each, :chars) == :chars ? by_chars(reader) : reader.gets)
        pause if chance(0.1)
        got << line
      end
      got
    end

    def by_chars(reader)
      line = reader.getc or return
      line << reader.getc until line.end_with?("\n")
      line
    end
  end

  # Request and response, one after the other, with IO#timeout set.
  class PingPong < StreamActor
    private

    def perform
      ours, theirs = sockets
      count = steps(100)
      answering = go("answers") do
        while (word = theirs.gets)
          theirs.write("#{word.chomp.reverse}\n")
        end
      end
      ours.timeout = chance(0.5) ? PATIENCE / @slow : nil
      count.times do |i|
        ours.write("#{i} ping\n")
        pause if chance(0.1)
        check(ours.gets == "gnip #{i.to_s.reverse}\n", "a wrong answer")
      end
      ours.close
      finish(answering)
    end
  end

  # IO.copy_stream between streams and files.
  class CopyStream < StreamActor
    private

    def perform
      from, into = stream
      out, last = stream
      sent = bytes(300_000)
      writing = write_and_close(into, sent)
      copying = go("copies") do
        check(IO.copy_stream(from, last) == sent.bytesize, "copy_stream counted wrong")
        last.close
      end
      same(read_all(out), sent)
      finish(writing, copying)
    end
  end

  # IO.select over many streams: what it says is ready is, and what is ready it says.
  class Selecting < StreamActor
    private

    def perform
      pairs = Array.new(steps(12)) { stream }
      sent = pairs.map { bytes(5_000) }
      writing = pairs.zip(sent).map { |(_, writer), text| write_and_close(writer, text) }
      got = pairs.map { +"" }
      select_until_all_ended(pairs.map(&:first), got)
      got.each_with_index { |text, i| same(text, sent[i]) }
      finish(*writing)
    end

    def select_until_all_ended(readers, got)
      open = readers.dup
      until open.empty?
        state, answer = raised_into(0.3) { IO.select(open, nil, chance(0.2) ? open : nil, pick(nil, moment, 5)) }
        next if state == :raised || answer.nil?

        answer.first.each do |reader|
          text = reader.read_nonblock(number(1..4096), exception: false)
          if text == :wait_readable
            check(defined?(Heddle::Faults), "IO.select said readable, and it is not")
            next
          end
          text ? got[readers.index(reader)] << text : open.delete(reader)
        end
      end
    end
  end

  # Enumerators that read: fibers that a task has resumed.
  class Enumerators < StreamActor
    private

    def perform
      reader, writer = stream
      sent = bytes(50_000)
      writing = write_and_close(writer, sent)
      same(read_by_enumerator(reader), sent)
      finish(writing)
    end

    def read_by_enumerator(reader)
      got = +""
      parts = Enumerator.new do |yielder|
        loop { yielder << reader.readpartial(number(1..9_000)) }
      rescue EOFError
        nil
      end
      loop do # ends with the StopIteration
        state, text = raised_into(0.3, GENTLE) { parts.next }
        got << text if state == :done
        pause
      end
      got
    end
  end
end
