# frozen_string_literal: true

require_relative "shared_io/remedy"

module Heddle
  using Internal

  # @!attribute [rw] shared_io
  #   @!scope class
  #   Sets what Heddle does when a task reads from a connection on which another task already waits for data. Then one
  #   task may get the answer that is meant for the other, and nothing else shows this mistake: a library that keeps a
  #   connection for each thread gives it to all tasks of that thread. A connection is a stream socket that does not
  #   listen, or an IO.popen with the mode "r+". The setting holds for the whole process.
  #   @return [Symbol] :warn, the default: a warning names the places of both tasks and a remedy, once for each line of
  #     the program; :raise: a {SharedIOError} in the second task; or :ignore

  # Reports two tasks that read from one stream. The extension finds them (ext/heddle/io/shared_io.c).
  #
  # @private
  module SharedIO
    # The largest number of places that are remembered, because a program that generates its code may have any number.
    PLACES_MAX = 1000
    # The beginnings of frames that do not belong to the program itself.
    LIBRARIES = Ractor.make_shareable(["<internal:", "#{RbConfig::CONFIG["rubylibdir"]}/",
                                       "#{File.dirname(__dir__)}/", "#{File.dirname(__dir__)}.rb"])
    private_constant :PLACES_MAX, :LIBRARIES

    class << self
      # Reports a shared IO. The extension calls it in the task that is about to read.
      #
      # @param io [IO]
      # @param root [Fiber] of the running task
      # @param other_root [Fiber] of the task that already waits
      # @param other_fiber [Fiber] the fiber that waits: the same, or one that it has resumed
      # @return [void]
      # @raise [Heddle::SharedIOError]
      def met(io, root, other_root, other_fiber)
        raises = Heddle.shared_io == :raise
        return unless raises || new_place?

        frames = frames_of(Fiber.current, root)
        others = frames_of(other_fiber, other_root)
        told = "#{title(root)} reads from #{IOName.of(io)}, where #{title(other_root)} waits for data already: " \
               "one of them may get the answer that is meant for the other"
        first = "#{title(other_root)} waits here:\n#{indent(others)}"
        remedy = "What helps: #{Remedy.of(frames + others)}"
        raise SharedIOError, "#{told}\n#{first}#{remedy}" if raises

        warn("heddle: #{told}\n#{first}#{title(root)} reads here:\n#{indent(frames)}#{remedy}")
      end

      private

      # Is it the first report for this line of the program?
      def new_place?
        place = nil
        Thread.each_caller_location do |location|
          path = location.path
          next if path.nil? || path.start_with?(*LIBRARIES)

          place ||= [path, location.lineno] # a program may consist of libraries alone
          break place = [path, location.lineno] unless path.include?("/gems/")
        end
        places = Ractor.current[:heddle_shared_io_places] ||= {}
        places.clear if places.size >= PLACES_MAX
        !places.key?(place) && (places[place] = true)
      end

      # Returns the frames of both fibers, because a fiber that another one has resumed shows only its own part.
      def frames_of(fiber, root)
        TaskFailure.clean([fiber, root].uniq.flat_map { |one| one.backtrace || [] })
      end

      def title(root)
        task = Dump.schedulers.keys.flat_map(&:tasks).find { |one| root.equal?(one.fiber) }
        return root.inspect unless task

        task.name ? "task #{task.name.inspect}" : task.inspect
      end

      def indent(frames) = frames.map { |frame| "      #{frame}\n" }.join
    end
  end
  private_constant :SharedIO

  class << self
    # Allows several tasks to read from this IO without a warning. Use it for a pair of sockets from which several tasks
    # take their work. A pipe does not need it.
    #
    # @param io [IO, #to_io]
    # @return [IO, #to_io] the argument
    # @raise [ArgumentError] if it is not an IO
    # @see .shared_io
    def share_io(io)
      SharedIO.allow(IO.try_convert(io) || Check.refuse("io: must be an IO, not #{Check.shown(io)}"))
      io
    end
  end
end
