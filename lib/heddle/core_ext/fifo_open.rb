# frozen_string_literal: true

require "fcntl"

module Heddle
  module CoreExt
    # Opens FIFOs by their path for the other methods that open a file.
    module FifoOpen
      # For IO's own methods.
      module Path
        def sysopen(*arguments)
          return __heddle_path_sysopen(*arguments) unless Scheduler.current && arguments.any?

          path, *arguments = arguments
          path = Opening.path_of(path)
          flags = Opening.fifo_flags(arguments.first) if Opening.kind_of(path) == :fifo
          flags ? Opening.descriptor_of_fifo(path, flags) : __heddle_path_sysopen(path, *arguments)
        end

        def foreach(*arguments, **options, &block)
          by_path = block && Scheduler.current && arguments.any?
          return __heddle_path_foreach(*arguments, **options, &block) unless by_path

          path, *arguments = arguments
          path = Opening.path_of(path)
          return __heddle_path_foreach(path, *arguments, **options, &block) unless Opening.kind_of(path) == :fifo

          line_options = options.slice(:chomp)
          File.open(path, **options.except(:chomp)) { |file| file.each_line(*arguments, **line_options, &block) }
          nil
        end
      end

      # For an IO.
      module Reopen
        def reopen(*arguments, **options)
          if arguments.any? && !arguments.first.is_a?(IO) && Scheduler.current && !closed?
            path, mode = arguments
            arguments[0] = path = Opening.path_of(path)
            return FifoOpen.reopen(self, path, mode || options[:mode]) if Opening.kind_of(path) == :fifo
          end
          __heddle_path_reopen(*arguments, **options)
        end
      end

      # Lets the IO take over another one, which has the same class.
      def self.reopen(io, path, mode)
        mode ||= io.fcntl(Fcntl::F_GETFL) & Fcntl::O_ACCMODE
        other = io.is_a?(File) ? File.new(path, mode) : IO.new(IO.sysopen(path, mode), mode, path: path)
        io.__send__(:__heddle_path_reopen, other)
      ensure
        other&.close
      end
    end
  end
end
