# frozen_string_literal: true

module Heddle
  using Internal

  # Opens a file by its path in the way that stops no other fiber. A FIFO waits for its other end: a thread of the pool
  # opens it. A plain file that the kernel already knows is opened inline, while Ruby 3.4+ hands every open to a worker.
  module Opening
    EMPTYING = File::WRONLY | File::CREAT | File::TRUNC
    private_constant :EMPTYING

    class << self
      # Returns the path as Ruby would: a Pathname and similar objects have one.
      def path_of(object) = !object.is_a?(String) && object.respond_to?(:to_path) ? File.path(object) : object

      # Returns the kind of file to which the path leads, as far as the kernel knows: :fifo, :file, :large_file, or nil.
      def kind_of(path) = Scheduler.current&.cached_kind(path)

      # Runs the block, which opens a file of this kind as Ruby does.
      #
      # @param mode [String, Integer, nil] the mode in which it is opened
      # @param flags [Integer, nil] the option of this name
      def by_ruby(kind, mode, flags = nil, &)
        known = kind && kind != :fifo && !flags
        known && only_reads?(mode) ? Scheduler.current.inline(&) : yield
      end

      # Returns the flags for open(2), or nil if the mode contains anything unusual.
      #
      # @param options [Hash] the options of File.open
      def fifo_flags(mode, options = {})
        mode ||= options[:mode] || "r"
        mode |= options[:flags] || 0 if mode.is_a?(Integer)
        return mode if mode.is_a?(Integer)
        return if options[:flags] || !mode.is_a?(String)

        { "r" => File::RDONLY, "w" => EMPTYING, "a" => File::WRONLY }[mode[0]] unless mode.match?(/[+x]/)
      end

      # Returns the descriptor of a FIFO that a thread of the pool opens. File.open would lose the descriptor there when
      # an exception is raised in the fiber at the wrong moment. On Ruby 3.4+ it would not end at all, because it opens
      # once more after EINTR.
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

      # Closes a descriptor that has no owner.
      def close(descriptor) = IO.for_fd(descriptor).close

      private

      # Is the file only read? A file that is opened for writing may have to be emptied first, which takes time.
      def only_reads?(mode)
        mode.nil? || (mode.is_a?(String) && mode.start_with?("r") && !mode.include?("+"))
      end
    end
  end
  private_constant :Opening
end
