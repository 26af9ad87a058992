# frozen_string_literal: true

require_relative "file_open"

module Heddle
  module CoreExt
    # Files that are read or written as a whole.
    module WholeFile
      CLOSES_BY_WORKER = RUBY_VERSION >= "3.4"
      PIECE_SIZE = 1 << 19
      LARGE = 1 << 20
      private_constant :CLOSES_BY_WORKER, :PIECE_SIZE, :LARGE

      class << self
        # For the methods that write a whole file. Ruby 3.4+ does not close it by the method IO#close, and has a worker
        # do it, or write what is left: a fiber that is cancelled would leave the descriptor behind.
        def write(path, data, offset, options, &)
          mode = File::WRONLY | File::CREAT | (offset ? 0 : File::TRUNC)
          by_hand = lambda do
            File.open(path, mode: mode, **options) do |file|
              file.seek(offset) if offset
              file.write(data)
            end
          end
          other = by_hand if CLOSES_BY_WORKER && !path.to_s.start_with?("|") # (IO.write: a command)
          FileOpen.open(path, ["w"], options, fifo: by_hand, large: by_hand, other: other, &)
        end

        # For the methods that read one, when it is large.
        def read(path, mode) = File.open(path, mode, &:read)

        # Reads what is left of a large file. Ruby writes zeros to the memory of the whole string first, which takes as
        # long as reading: here that too is done piece by piece, and the others run in between (see hook_io.c).
        #
        # @param size [Integer] bytes; there may be fewer, and more if +all+ are to be read
        def read_in_pieces(file, size, encoding, all:)
          whole = Fiber.current_scheduler.__send__(:string_for, size)
          piece = +""
          left = size
          while all || left.positive?
            file.read(all ? PIECE_SIZE : [PIECE_SIZE, left].min, piece) or break
            whole << piece
            left -= piece.bytesize
          end
          whole.force_encoding(encoding)
        end

        # How many bytes there are to be read, if they are many and need no conversion; else nil. (IO#pos forgets what
        # ungetc has put into the buffer; so does IO#read without a length.)
        def large_size(file, length)
          return if length && !(length.is_a?(Integer) && length > LARGE)

          scheduler = Fiber.current_scheduler
          return unless scheduler.is_a?(Scheduler)

          size = file.size
          return if size <= LARGE
          return [size, length].min if length

          left = size - file.pos
          left if left > LARGE && !scheduler.__send__(:converts?, file)
        end
      end

      # For the methods of IO that open a file, do something to it and close it. A FIFO is opened like every other
      # one, and the fiber itself waits for what it does then.
      module ByPath
        # @private
        def read(path, length = nil, offset = nil, **options)
          fifo = -> { File.open(path, **options) { |file| file.read(length) } } unless offset
          large = -> { WholeFile.read(path, "r") } unless length || offset || options.any?
          FileOpen.open(path, [], options, fifo: fifo, large: large) { super }
        end

        # @private
        def binread(path, length = nil, offset = nil)
          fifo = -> { File.open(path, "rb") { |file| file.read(length) } } unless offset
          large = -> { WholeFile.read(path, "rb") } unless length || offset
          FileOpen.open(path, [], {}, fifo: fifo, large: large) { super }
        end

        # @private
        def readlines(path, *arguments, chomp: false, **options)
          fifo = -> { File.open(path, **options) { |file| file.readlines(*arguments, chomp: chomp) } }
          FileOpen.open(path, [], options, fifo: fifo) { super }
        end

        # @private
        def write(path, data, offset = nil, **options)
          WholeFile.write(path, data, offset, options) { super }
        end

        # @private
        def binwrite(path, data, offset = nil, **options)
          WholeFile.write(path, data, offset, { binmode: true, **options }) { super }
        end
      end

      # For a File that is open.
      module Read
        # @see https://docs.ruby-lang.org/en/master/IO.html#method-i-read
        def read(length = nil, buffer = nil)
          size = WholeFile.large_size(self, length) unless buffer
          return super unless size

          encoding = length ? Encoding::BINARY : external_encoding || Encoding.default_external
          WholeFile.read_in_pieces(self, size, encoding, all: !length)
        end
      end
    end
  end
end

IO.singleton_class.prepend(Heddle::CoreExt::WholeFile::ByPath)
File.prepend(Heddle::CoreExt::WholeFile::Read)
