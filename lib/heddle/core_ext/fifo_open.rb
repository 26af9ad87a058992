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
          return __heddle_sysopen(path, *arguments) unless Scheduler.current

          path = FileOpen.name_of(path)
          flags = FileOpen.fifo_flags(arguments, {})
          fifo = -> { FileOpen.descriptor_of_fifo(path, flags) } if flags
          FileOpen.open(path, arguments, {}, fifo: fifo) { __heddle_sysopen(path, *arguments) }
        end

        # @private
        def foreach(path, *arguments, **options, &block)
          return __heddle_foreach(path, *arguments, **options, &block) unless block && Scheduler.current

          path = FileOpen.name_of(path)
          fifo = lambda do
            line_options = options.slice(:chomp)
            File.open(path, **options.except(:chomp)) { |file| file.each_line(*arguments, **line_options, &block) }
            nil
          end
          FileOpen.open(path, [], options, fifo: fifo) { __heddle_foreach(path, *arguments, **options, &block) }
        end
      end

      # For an IO.
      module Reopen
        # @private
        def reopen(path, *arguments, **options)
          if path.is_a?(IO) || !Scheduler.current || closed?
            return __heddle_path_reopen(path, *arguments) if options.empty?

            return __heddle_path_reopen(path, *arguments, **options)
          end

          path = FileOpen.name_of(path)
          fifo = lambda do
            mode = arguments.first || options[:mode] || (fcntl(Fcntl::F_GETFL) & Fcntl::O_ACCMODE)
            # Of the class that this one has: it takes over the other's.
            other = is_a?(File) ? File.new(path, mode) : IO.new(IO.sysopen(path, mode), mode, path: path)
            __heddle_path_reopen(other)
          ensure
            other&.close
          end
          FileOpen.open(path, ["r+"], {}, fifo: fifo) { __heddle_path_reopen(path, *arguments, **options) }
        end
      end
    end
  end
end

Heddle::CoreExt.replace(IO.singleton_class, Heddle::CoreExt::FifoOpen::Path)
Heddle::CoreExt.replace(IO, Heddle::CoreExt::FifoOpen::Reopen, prefix: "__heddle_path_") # (below io_close)
