# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # How a file is opened. A FIFO waits for its other end: a thread of the pool opens it (Ruby 3.3 asks no scheduler
    # then). A plain file that the kernel knows already is opened on the spot (Ruby 3.4+ hands every open to a worker,
    # which costs three times what reading a small file does).
    module FileOpen
      # Runs the block, which opens +path+, or +fifo+ where that leads to one, or +large+ where the kernel knows that it
      # is a large file, or +other+ for a file that may take time.
      def self.open(path, arguments, options, fifo:, large: nil, other: nil, &block)
        scheduler = Scheduler.current
        return yield unless scheduler

        kind = scheduler.known_kind(path)
        return fifo ? fifo.call : yield if kind == :fifo
        return large.call if kind == :large_file && large
        return scheduler.quickly(&block) if kind && only_reads?(arguments, options)

        other ? other.call : yield
      end

      # Opens a FIFO on a thread of the pool and yields the descriptor, of which +file+ is to be made. (File.open there
      # would lose it when the fiber is struck at the wrong moment, and not end at all on Ruby 3.4+, which opens once
      # more after EINTR.)
      def self.open_fifo(file, path, flags)
        descriptor = descriptor_of_fifo(path, flags)
        yield(descriptor)
      ensure
        close(descriptor) if descriptor && !owns?(file, descriptor)
      end

      # The descriptor of a FIFO that a thread of the pool has opened.
      def self.descriptor_of_fifo(path, flags)
        scheduler = Scheduler.current
        work = lambda do
          result = scheduler.open_descriptor(path, flags)
          redo if result == -Errno::EINTR::Errno && !Thread.pending_interrupt?
          result.negative? ? raise(SystemCallError.new(path, -result, "rb_sysopen")) : result
        end
        name = "the other end of the FIFO #{path}"
        scheduler.offload(work, lasting: true, discard: method(:close), name: name)
      end

      # Not a mark that is set after the block: a fiber that is struck just before it would have the descriptor closed
      # here and once more with the file, when the number may be another's.
      def self.owns?(file, descriptor)
        file.fileno == descriptor
      rescue IOError
        false # it is nobody's yet
      end
      private_class_method :owns?

      def self.close(descriptor) = IO.for_fd(descriptor).close
      private_class_method :close

      EMPTYING = File::WRONLY | File::CREAT | File::TRUNC
      private_constant :EMPTYING

      # The path as Ruby takes it: a Pathname or the like has one.
      def self.name_of(path) = !path.is_a?(String) && path.respond_to?(:to_path) ? File.path(path) : path

      # The flags for open(2), or nil if the mode says anything out of the way.
      def self.fifo_flags(arguments, options)
        mode = arguments.first || options[:mode] || "r"
        mode |= options[:flags] || 0 if mode.is_a?(Integer)
        return mode if mode.is_a?(Integer)
        return if options[:flags] || !mode.is_a?(String)

        { "r" => File::RDONLY, "w" => EMPTYING, "a" => File::WRONLY }[mode[0]] unless mode.match?(/[+x]/)
      end

      # A file that is opened to be written may have to be emptied first, which takes time.
      def self.only_reads?(arguments, options)
        mode = arguments.first || options[:mode]
        !options[:flags] && (mode.nil? || (mode.is_a?(String) && mode.start_with?("r") && !mode.include?("+")))
      end
      private_class_method :only_reads?

      EMPTIES_HERE = RUBY_VERSION < "3.4" # to throw a large file away takes milliseconds
      private_constant :EMPTIES_HERE

      # Makes a File of a path, or of what else Ruby takes, in a fiber: see ext/heddle/glue/file_open.c.
      def self.make(file, path, arguments, options)
        path = name_of(path)
        flags = fifo_flags(arguments, options)
        fifo = flags && lambda do
          open_fifo(file, path, flags) do |descriptor|
            mode = arguments.first || options[:mode] || "r" # (with path: it has to be a keyword)
            file.__send__(:__heddle_initialize, descriptor, **options.except(:perm), mode: mode, path: path)
          end
        end
        large = fifo if EMPTIES_HERE && flags&.anybits?(File::TRUNC)
        FileOpen.open(path, arguments, options, fifo: fifo, large: large) do
          file.__send__(:__heddle_initialize, path, *arguments, **options)
        end
      end
    end
  end
end

Heddle::CoreExt.replace(File, Heddle::CoreExt::FileOpen::Initialize)
