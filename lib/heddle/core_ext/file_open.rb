# frozen_string_literal: true

module Heddle
  module CoreExt
    # How a file is opened. A FIFO waits for its other end: a thread of the pool opens it (Ruby 3.3 asks no scheduler
    # then). A plain file that the kernel knows already is opened on the spot (Ruby 3.4+ hands every open to a worker,
    # which costs three times what reading a small file does).
    module FileOpen
      # Runs the block, which opens +path+, where it holds up nobody.
      def self.open(path, arguments, options, &block)
        scheduler = Fiber.current_scheduler
        return yield unless scheduler.is_a?(Scheduler)

        case scheduler.__send__(:known_kind, path.respond_to?(:to_path) ? path.to_path : path)
        when :fifo then scheduler.__send__(:offload, block, lasting: true)
        when :file then only_reads?(arguments, options) ? scheduler.__send__(:quickly, &block) : yield
        else yield
        end
      end

      # A file that is opened to be written may have to be emptied first, which takes time.
      def self.only_reads?(arguments, options)
        mode = arguments.first || options[:mode]
        !options[:flags] && (mode.nil? || (mode.is_a?(String) && mode.start_with?("r") && !mode.include?("+")))
      end
      private_class_method :only_reads?

      # For File.
      module Initialize
        # @private
        def initialize(path, *arguments, **options)
          FileOpen.open(path, arguments, options) { super }
        end
      end

      # For the methods of IO that open a file, do something to it and close it.
      module WholeFile
        # @private
        def read(path, *arguments, **options) = FileOpen.open(path, [], options) { super }
        # @private
        def binread(path, *arguments) = FileOpen.open(path, [], {}) { super }
        # @private
        def readlines(path, *arguments, **options) = FileOpen.open(path, [], options) { super }
        # @private
        def write(path, *arguments, **options) = FileOpen.open(path, ["w"], options) { super }
        # @private
        def binwrite(path, *arguments, **options) = FileOpen.open(path, ["w"], options) { super }
      end
    end
  end
end

File.prepend(Heddle::CoreExt::FileOpen::Initialize)
IO.singleton_class.prepend(Heddle::CoreExt::FileOpen::WholeFile)
