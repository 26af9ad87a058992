# frozen_string_literal: true

require_relative "streams"

module Fuzz
  # A file, read and written at random places, against a string.
  class Files < StreamActor
    private

    def perform
      folder = keep(Dir.mktmpdir("heddle-fuzz"))
      @path = File.join(folder, "file")
      @model = bytes(50_000)
      File.binwrite(@path, @model)
      @file = keep(File.open(@path, "r+b"))
      steps(40).times { chance(0.5) ? read : write }
      @file.close
      same(File.binread(@path), @model)
    end

    def read
      at = number(0...@model.bytesize)
      size = number(1..20_000)
      state, text = raised_into(0.4) { chance(0.3) ? File.binread(@path, size, at) : read_at(at, size) }
      check(state == :raised || text == @model.byteslice(at, size), "the file holds something else")
    end

    def read_at(at, size)
      return pread(at, size) if chance(0.5)

      @file.seek(at)
      @file.read(size)
    end

    # One call may read less than it was asked for.
    def pread(at, size)
      text = @file.pread(size, at)
      text << @file.pread(size - text.bytesize, at + text.bytesize) while text.bytesize < size
      text
    rescue EOFError
      text
    end

    def write
      at = number(0..@model.bytesize)
      text = bytes(10_000)
      if chance(0.5)
        written = 0
        written += @file.pwrite(text.byteslice(written..), at + written) while written < text.bytesize
      else
        @file.seek(at)
        @file.write(text)
        @file.flush
      end
      @model[at, text.bytesize] = text
    end
  end

  # A FIFO, whose ends are opened by two tasks in any order.
  class Fifos < StreamActor
    private

    def perform
      folder = keep(Dir.mktmpdir("heddle-fuzz"))
      path = File.join(folder, "fifo")
      File.mkfifo(path)
      sent = bytes(100_000)
      writing = go("writes") do
        pause
        File.open(path, "wb") do |fifo|
          fifo.sync = chance(0.5)
          fifo.write(sent)
        end
      end
      pause
      same(File.open(path, "rb", &:read), sent)
      finish(writing)
    end
  end
end
