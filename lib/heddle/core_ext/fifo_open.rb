# frozen_string_literal: true

require "fcntl"

module Heddle
  module CoreExt
    # The other methods that open a file by its path, for FIFOs.
    module FifoOpen
      # For IO's own methods.
      module Path
        def sysopen(path, *arguments)
          return __heddle_path_sysopen(path, *arguments) unless Scheduler.current

          path = Opening.path_of(path)
          flags = Opening.fifo_flags(arguments.first) if Opening.kind_of(path) == :fifo
          flags ? Opening.descriptor_of_fifo(path, flags) : __heddle_path_sysopen(path, *arguments)
        end

        def foreach(path, *arguments, **options, &block)
          return __heddle_path_foreach(path, *arguments, **options, &block) unless block && Scheduler.current

          path = Opening.path_of(path)
          return __heddle_path_foreach(path, *arguments, **options, &block) unless Opening.kind_of(path) == :fifo

          line_options = options.slice(:chomp)
          File.open(path, **options.except(:chomp)) { |file| file.each_line(*arguments, **line_options, &block) }
          nil
        end
      end

      # For an IO.
      module Reopen
        def reopen(path, *arguments, **options)
          if !path.is_a?(IO) && Scheduler.current && !closed?
            path = Opening.path_of(path)
            return FifoOpen.reopen(self, path, arguments.first || options[:mode]) if Opening.kind_of(path) == :fifo
          end
          __heddle_path_reopen(path, *arguments, **options)
        end
      end

      # The IO takes over another one, of the class that it has.
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
