# frozen_string_literal: true

module Heddle
  using Internal

  # How a file is opened by its path. A FIFO waits for its other end: a thread of the pool opens it. A plain file that
  # the kernel knows already is opened inline (Ruby 3.4+ hands every open to a worker).
  module Opening
    EMPTYING = File::WRONLY | File::CREAT | File::TRUNC
    private_constant :EMPTYING

    class << self
      # The path as Ruby takes it: a Pathname or the like has one.
      def path_of(object) = !object.is_a?(String) && object.respond_to?(:to_path) ? File.path(object) : object

      # What the path leads to, as far as the kernel knows: :fifo, :file, :large_file, or nil.
      def kind_of(path) = Scheduler.current&.cached_kind(path)

      # Runs the block, which opens a file of this kind as Ruby does.
      #
      # @param mode [String, Integer, nil] in which it is opened
      # @param flags [Integer, nil] the option of this name
      def by_ruby(kind, mode, flags = nil, &)
        known = kind && kind != :fifo && !flags
        known && only_reads?(mode) ? Scheduler.current.inline(&) : yield
      end

      # The flags for open(2), or nil if the mode says anything out of the way.
      #
      # @param options [Hash] as File.open takes them
      def fifo_flags(mode, options = {})
        mode ||= options[:mode] || "r"
        mode |= options[:flags] || 0 if mode.is_a?(Integer)
        return mode if mode.is_a?(Integer)
        return if options[:flags] || !mode.is_a?(String)

        { "r" => File::RDONLY, "w" => EMPTYING, "a" => File::WRONLY }[mode[0]] unless mode.match?(/[+x]/)
      end

      # The descriptor of a FIFO that a thread of the pool opens. (File.open there would lose it when the fiber is
      # struck at the wrong moment, and not end at all on Ruby 3.4+, which opens once more after EINTR.)
      def descriptor_of_fifo(path, flags)
        scheduler = Scheduler.current
        work = lambda do
          result = scheduler.open_descriptor(path, flags)
          redo if result == -Errno::EINTR::Errno && !Thread.pending_interrupt?
          result.negative? ? raise(SystemCallError.new(path, -result, "rb_sysopen")) : result
        end
        name = "the other end of the FIFO #{path}"
        scheduler.offload(work, lasting: true, discard: method(:close), name: name)
      end

      # The descriptor has become nobody's.
      def close(descriptor) = IO.for_fd(descriptor).close

      private

      # A file that is opened to be written may have to be emptied first, which takes time.
      def only_reads?(mode)
        mode.nil? || (mode.is_a?(String) && mode.start_with?("r") && !mode.include?("+"))
      end
    end
  end
  private_constant :Opening
end
