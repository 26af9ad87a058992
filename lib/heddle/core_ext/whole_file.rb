# frozen_string_literal: true

require_relative "file_open"

module Heddle
  using Internal

  module CoreExt
    # Files that are read or written as a whole.
    module WholeFile
      CLOSES_BY_WORKER = RUBY_VERSION >= "3.4"
      PIECE_SIZE = 1 << 19
      private_constant :CLOSES_BY_WORKER, :PIECE_SIZE

      class << self
        # For the methods that write a whole file. Ruby 3.4+ does not close it by the method IO#close, and has a worker
        # do it, or write what is left: a fiber that is cancelled would leave the descriptor behind.
        #
        # @yield [String] the path: Ruby's own way
        def write(path, data, offset, options)
          path = FileOpen.name_of(path)
          mode = File::WRONLY | File::CREAT | (offset ? 0 : File::TRUNC)
          by_hand = lambda do
            File.open(path, mode: mode, **options) do |file|
              file.seek(offset) if offset
              file.write(data)
            end
          end
          other = by_hand if CLOSES_BY_WORKER && !path.to_s.start_with?("|") # (IO.write: a command)
          FileOpen.open(path, ["w"], options, fifo: by_hand, large: by_hand, other: other) { yield(path) }
        end

        # For the methods that read one, when it is large.
        def read(path, mode) = File.open(path, mode, &:read)

        # Reads what is left of a large file. Ruby writes zeros to the memory of the whole string first, which takes as
        # long as reading: here that too is done piece by piece, and the others run in between (see hook_io.c).
        #
        # @param size [Integer] bytes that there are about; there may be fewer or more
        # @param length [Integer, nil] the most that is read; nil: all
        # @return [String, nil] nil where IO#read gives it: at the end of the file, if a length was given
        def read_in_pieces(file, size, length, encoding)
          whole = Scheduler.current.string_for(size)
          piece = +""
          until length == whole.bytesize
            count = length ? [PIECE_SIZE, length - whole.bytesize].min : PIECE_SIZE
            file.__send__(:__heddle_read, count, piece) or break
            whole << piece
          end
          whole.force_encoding(encoding) unless length && whole.empty?
        end

        # How many bytes there are about to be read, if the file is large and needs no conversion; else nil.
        def large_size(file, length)
          return if length.is_a?(Integer) && length <= PIECE_SIZE # (the usual case)

          Scheduler.current&.large_size(file, length)
        end
      end

      # For the methods of IO that open a file, do something to it and close it. A FIFO is opened like every other
      # one, and the fiber itself waits for what it does then.
      module ByPath
        # @private
        def read(path, *rest, **options)
          unless Scheduler.current
            return options.empty? ? __heddle_read(path, *rest) : __heddle_read(path, *rest, **options)
          end

          path = FileOpen.name_of(path)
          length, offset, mode = rest
          fifo = -> { File.open(path, **options) { |file| file.read(length) } } unless offset || mode
          large = -> { WholeFile.read(path, "r") } if rest.none? && options.empty?
          FileOpen.open(path, [*mode], options, fifo: fifo, large: large) { __heddle_read(path, *rest, **options) }
        end

        # @private
        def binread(path, length = nil, offset = nil)
          return __heddle_binread(path, length, offset) unless Scheduler.current

          path = FileOpen.name_of(path)
          fifo = -> { File.open(path, "rb") { |file| file.read(length) } } unless offset
          large = -> { WholeFile.read(path, "rb") } unless length || offset
          FileOpen.open(path, [], {}, fifo: fifo, large: large) { __heddle_binread(path, length, offset) }
        end

        # @private
        def readlines(path, *arguments, **options)
          unless Scheduler.current
            return __heddle_readlines(path, *arguments) if options.empty?

            return __heddle_readlines(path, *arguments, **options)
          end

          path = FileOpen.name_of(path)
          line_options = options.slice(:chomp)
          fifo = -> { File.open(path, **options.except(:chomp)) { |file| file.readlines(*arguments, **line_options) } }
          FileOpen.open(path, [], options, fifo: fifo) { __heddle_readlines(path, *arguments, **options) }
        end

        # @private
        def write(path, data, offset = nil, **options)
          unless Scheduler.current
            return options.empty? ? __heddle_write(path, data, offset) : __heddle_write(path, data, offset, **options)
          end

          WholeFile.write(path, data, offset, options) { |name| __heddle_write(name, data, offset, **options) }
        end

        # @private
        def binwrite(path, data, offset = nil, **options)
          return __heddle_binwrite(path, data, offset, **options) unless Scheduler.current

          WholeFile.write(path, data, offset, { binmode: true, **options }) do |name|
            __heddle_binwrite(name, data, offset, **options)
          end
        end
      end

      # For a File that is open.
      module Read
        # @see https://docs.ruby-lang.org/en/master/IO.html#method-i-read
        def read(length = nil, buffer = nil)
          size = WholeFile.large_size(self, length) if Scheduler.current && !buffer
          return __heddle_read(length, buffer) unless size

          encoding = length ? Encoding::BINARY : external_encoding || Encoding.default_external
          WholeFile.read_in_pieces(self, size, length, encoding)
        end
      end
    end
  end
end

Heddle::CoreExt.replace(IO.singleton_class, Heddle::CoreExt::WholeFile::ByPath)
Heddle::CoreExt.replace(File, Heddle::CoreExt::WholeFile::Read)
