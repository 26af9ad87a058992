# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # Copies in the fiber when a socket or a pipe takes part. Ruby 3.4+ has a worker do the whole of IO.copy_stream, and
    # wait there for sockets and pipes, where neither a close nor a cancel reaches it.
    module CopyStream
      # The number of bytes of a file that a worker, or the fiber inline, copies to another file in one go.
      PART = RubyFeatures::OPEN_IS_OFFLOADED ? 64 << 20 : 1 << 20
      private_constant :PART

      ARGF_CLASS = ARGF.class # Ractors cannot reach the object itself
      private_constant :ARGF_CLASS

      # Stands for a source that is not a file: Ruby reads from it as from any object that is not an IO.
      class Source
        def initialize(io)
          @io = io
        end

        def readpartial(...) = @io.readpartial(...)
      end
      private_constant :Source

      # Stands for a destination that has a buffer. From an IO Ruby writes each part to the descriptor, but the parts
      # that it reads from another object would stay in the buffer until the source ends.
      class Destination
        def initialize(io)
          @io = io
        end

        def write(part)
          @io.write(part).tap { @io.flush }
        end
      end
      private_constant :Destination

      # Copies from a file to a destination that is not a file.
      class FileCopy
        CHUNK = 262_144
        private_constant :CHUNK

        # +length+ and +offset+ may be nil. As with Ruby, a negative number counts as nil.
        def initialize(scheduler, source, destination, length, offset)
          @scheduler = scheduler
          @source = source
          @destination = destination
          @rest, @offset = [length, offset].map { |number| number unless number&.negative? }
          @total = 0
        end

        # @return [Integer] bytes copied
        def run
          advance(@scheduler.send_file(@source, @destination, @offset, @rest) || read_and_write) until @rest&.zero?
          @total
        rescue EOFError
          @total
        end

        private

        def advance(count)
          @total += count
          @rest -= count if @rest
          @offset += count if @offset
        end

        # A worker reads the parts that are in Ruby's buffer, or not in memory.
        def read_and_write
          size = [@rest, CHUNK].compact.min
          @buffer ||= String.new(capacity: size)
          @offset ? @source.pread(size, @offset, @buffer) : @source.readpartial(size, @buffer)
          @destination.write(@buffer)
          @destination.flush
          @buffer.bytesize
        end
      end
      private_constant :FileCopy

      def copy_stream(source, destination, length = nil, offset = nil)
        scheduler = Scheduler.current
        plain = scheduler && [length, offset].all? { |number| number.nil? || CopyStream.number?(number) }
        return __heddle_copy_stream(source, destination, length, offset) unless plain

        CopyStream.open(source, File::RDONLY) do |from|
          CopyStream.check_before_truncation(from, destination)
          CopyStream.open(destination, File::WRONLY | File::CREAT | File::TRUNC) do |to|
            case [CopyStream.kind(from), CopyStream.kind(to)]
            in :file, :stream
              __heddle_copy_stream(from, to, 0, offset) # which checks the arguments, sets and flushes the destination
              FileCopy.new(scheduler, from, to, length, offset).run
            in :stream, Symbol unless offset
              source = Source.new(from)
              next __heddle_copy_stream(source, to, length) if to.sync

              __heddle_copy_stream(source, to, 0) # which sets and flushes the destination
              __heddle_copy_stream(source, Destination.new(to), length)
            in :file, :file
              CopyStream.in_parts(length, offset) { |*part| __heddle_copy_stream(from, to, *part) }
            else
              __heddle_copy_stream(from, to, length, offset)
            end
          end
        end
      end

      class << self
        # Yields the IO of the argument: a path is opened as Ruby would open it. An argument that Ruby does not take for
        # an IO stays as it is.
        def open(stream, flags, &)
          return yield(stream) unless path?(stream)

          io = IO.try_convert(stream)
          io ? yield(io) : File.open(stream, flags | File::NOCTTY, 0o666, &)
        end

        # Raises Ruby's error of a source that cannot be read, while the destination still has its content.
        def check_before_truncation(source, destination)
          source.read(0) if source.is_a?(IO) && path?(destination)
        end

        def path?(stream)
          case stream
          when IO, ARGF_CLASS then false
          else stream.is_a?(String) || stream.respond_to?(:to_path)
          end
        end

        # Does Ruby accept this value as a length or an offset?
        def number?(value) = value.is_a?(Integer) && value.bit_length < 64

        # @return [Symbol, nil] nil: not an IO, or a directory, which Ruby's own method refuses
        def kind(io)
          return unless io.is_a?(IO)

          stat = io.stat
          return :file if stat.file?

          :stream unless stat.directory?
        end

        # Nothing can interrupt the copying from file to file, so it is done a part at a time.
        def in_parts(length, offset)
          length = nil if length&.negative?
          total = 0
          loop do
            part = [(length - total if length), PART].compact.min
            count = yield(part, offset && !offset.negative? ? offset + total : nil)
            total += count
            return total if count < part || total == length

            Scheduler.current.yield unless RubyFeatures::OPEN_IS_OFFLOADED
          end
        end
      end
    end
  end
end
