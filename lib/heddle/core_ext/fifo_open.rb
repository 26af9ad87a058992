# frozen_string_literal: true

require "fcntl"
require_relative "file_open"

module Heddle
  module CoreExt
    # The other methods of Ruby 3.3 that open a file by its path: a FIFO is opened by a thread of the pool (see
    # FileOpen), as Ruby 3.4+ has it done.
    module FifoOpen
      # For IO's own methods.
      module Path
        # @private
        def sysopen(path, *arguments)
          flags = FileOpen.fifo_flags(arguments, {})
          name = FileOpen.name_of(path)
          FileOpen.open(path, arguments, {}, fifo: flags && -> { FileOpen.descriptor_of_fifo(name, flags) }) { super }
        end

        # @private
        def foreach(path, *arguments, chomp: false, **options, &block)
          fifo = lambda do
            File.open(path, **options) { |file| file.each_line(*arguments, chomp: chomp, &block) }
            nil
          end
          FileOpen.open(path, [], options, fifo: block && fifo) { super }
        end
      end

      # For an IO.
      module Reopen
        # @private
        def reopen(path, *arguments, **options)
          return super if path.is_a?(IO) || closed?

          fifo = lambda do
            mode = arguments.first || options[:mode] || (fcntl(Fcntl::F_GETFL) & Fcntl::O_ACCMODE)
            # Of the class that this one has: it takes over the other's.
            other = is_a?(File) ? File.new(path, mode) : IO.new(IO.sysopen(path, mode), mode, path: path)
            super(other)
          ensure
            other&.close
          end
          FileOpen.open(path, ["r+"], {}, fifo: fifo) { super }
        end
      end
    end
  end
end

IO.singleton_class.prepend(Heddle::CoreExt::FifoOpen::Path)
IO.prepend(Heddle::CoreExt::FifoOpen::Reopen)
