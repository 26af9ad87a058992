# frozen_string_literal: true

module Heddle
  module CoreExt
    # Implements File#initialize in a fiber. The method itself is in ext/heddle/core_ext/file_open.c.
    module FileOpen
      # Makes a File of a path, or of another object that Ruby accepts.
      def self.make(file, path, arguments, options)
        path = Opening.path_of(path)
        mode = arguments.first || options[:mode]
        kind = Opening.kind_of(path)
        flags = Opening.fifo_flags(mode, options) if waits?(kind)
        if flags && (kind == :fifo || flags.anybits?(File::TRUNC))
          return open_by_thread(file, path, flags, options.except(:perm).merge(mode: mode || "r", path: path))
        end

        Opening.by_ruby(kind, mode, options[:flags]) do
          file.__send__(:__heddle_initialize, path, *arguments, **options)
        end
      end

      # May the open wait? To throw a large file away takes milliseconds.
      def self.waits?(kind) = kind == :fifo || (kind == :large_file && !RubyFeatures::OPEN_IS_OFFLOADED)
      private_class_method :waits?

      def self.open_by_thread(file, path, flags, options)
        descriptor = Opening.descriptor_of_fifo(path, flags)
        file.__send__(:__heddle_initialize, descriptor, **options)
      ensure
        Opening.close(descriptor) if descriptor && !owns?(file, descriptor)
      end
      private_class_method :open_by_thread

      # Does the file own the descriptor? A mark that is set after the block would not do: if an exception is raised in
      # the fiber just before, the descriptor would be closed here and once more with the file, when the number may
      # belong to another file.
      def self.owns?(file, descriptor)
        file.fileno == descriptor
      rescue IOError
        false # the descriptor has no owner yet
      end
      private_class_method :owns?
    end
  end
end
