# frozen_string_literal: true

module Heddle
  module CoreExt
    # Reads or writes whole files. PIECE_SIZE, string_for, large_size, and the methods read and binread of IO, are in C:
    # whole_file.c.
    module WholeFile
      class << self
        # Implements IO.read for files that are not completely in the memory of the kernel.
        def read(io_class, path, *rest, **options)
          path = Opening.path_of(path)
          length, offset, mode = rest
          kind = Opening.kind_of(path)
          by_hand = kind == :fifo ? !offset && !mode : kind == :large_file && rest.none? && options.empty?
          return File.open(path, **options) { |file| file.read(length) } if by_hand

          Opening.by_ruby(kind, mode || options[:mode], options[:flags]) do
            io_class.__send__(:__heddle_read, path, *rest, **options)
          end
        end

        # Implements IO.binread for files that are not completely in the memory of the kernel.
        def binread(io_class, path, length = nil, offset = nil)
          path = Opening.path_of(path)
          kind = Opening.kind_of(path)
          by_hand = !offset && (kind == :fifo || (kind == :large_file && !length))
          return File.open(path, "rb") { |file| file.read(length) } if by_hand

          Opening.by_ruby(kind, nil) { io_class.__send__(:__heddle_binread, path, length, offset) }
        end

        # Implements the methods that write a whole file. Ruby 3.4+ does not close the file by the method IO#close, and
        # has a worker close it, or write the remaining bytes: a fiber that is cancelled would leave the descriptor
        # open.
        #
        # @param binary [Boolean] is it IO.binwrite? Ruby opens the file as for IO.write, and only then calls binmode
        # @yield [String] the path: Ruby's own way
        def write(path, data, offset, options, binary:)
          path = Opening.path_of(path)
          return yield(path) if options[:open_args] || !by_hand?(path)

          mode = options[:mode]
          mode = File::WRONLY | File::CREAT | (offset.nil? ? File::TRUNC : 0) if mode.nil?
          File.open(path, **options, mode:) do |file|
            file.binmode if binary
            file.seek(offset) unless offset.nil?
            file.write(data)
          end
        end

        # Reads the remaining bytes of a large file. Ruby writes zeros to the memory of the whole string first, which
        # takes as long as reading. Here both are done piece by piece, and other fibers run in between (see
        # io/transfer.c).
        #
        # @param size [Integer] the approximate number of bytes; the file may have fewer or more
        # @param length [Integer, nil] the largest number of bytes to read; nil: all
        # @return [String, nil] nil where IO#read returns it: at the end of the file, if a length was given
        def read_in_pieces(file, size, length, encoding)
          whole = string_for(size)
          piece = +""
          until length == whole.bytesize
            count = length ? [PIECE_SIZE, length - whole.bytesize].min : PIECE_SIZE
            file.__send__(:__heddle_read, count, piece) or break
            whole << piece
          end
          whole.force_encoding(encoding) unless length && whole.empty?
        end

        private

        def by_hand?(path)
          return false unless Scheduler.current
          return !path.to_s.start_with?("|") if RubyFeatures::OPEN_IS_OFFLOADED # IO.write: a command

          %i[fifo large_file].include?(Opening.kind_of(path))
        end
      end

      # Replaces methods of IO that open a file, use it and close it. A FIFO is opened as everywhere else, and the fiber
      # itself waits for its data.
      module ByPath
        def readlines(*arguments, **options)
          return __heddle_readlines(*arguments, **options) unless Scheduler.current && arguments.any?

          path, *arguments = arguments
          path = Opening.path_of(path)
          kind = Opening.kind_of(path)
          unless kind == :fifo
            mode, flags = options.values_at(:mode, :flags)
            return Opening.by_ruby(kind, mode, flags) { __heddle_readlines(path, *arguments, **options) }
          end

          line_options = options.slice(:chomp)
          File.open(path, **options.except(:chomp)) { |file| file.readlines(*arguments, **line_options) }
        end

        def write(path, data, offset = nil, **options)
          return __heddle_write(path, data, offset, **options) unless Scheduler.current

          WholeFile.write(path, data, offset, options, binary: false) do |name|
            __heddle_write(name, data, offset, **options)
          end
        end

        def binwrite(path, data, offset = nil, **options)
          return __heddle_binwrite(path, data, offset, **options) unless Scheduler.current

          WholeFile.write(path, data, offset, options, binary: true) do |name|
            __heddle_binwrite(name, data, offset, **options)
          end
        end
      end

      # For a file that is open.
      module Read
        # @see https://docs.ruby-lang.org/en/master/IO.html#method-i-read
        def read(length = nil, buffer = nil)
          size = WholeFile.large_size(self, length) if !buffer && Scheduler.current
          return __heddle_read(length, buffer) unless size

          encoding = length ? Encoding::BINARY : external_encoding || Encoding.default_external
          WholeFile.read_in_pieces(self, size, length, encoding)
        end
      end
    end
  end
end
