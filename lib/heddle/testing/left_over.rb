# frozen_string_literal: true

module Heddle
  using Internal

  module Testing
    # Raised by Heddle::Testing.example if a task is left over. The message has the place where each one was started,
    # and says what it waits for.
    class LeftOver < Error; end

    # Notes where tasks are started.
    class Places
      LIBRARY = "#{File.expand_path("../..", __dir__)}/heddle".freeze
      private_constant :LIBRARY

      def initialize
        @places = {}.compare_by_identity
        @hook = Heddle.on_spawn do |task|
          @places[task] = caller_locations.find { |frame| !frame.path.start_with?(LIBRARY) }
          nil
        end
      end

      def remove = @hook.remove

      # @raise [LeftOver] if a task of this thread, or a plain fiber, waits for something
      def check
        scheduler = Scheduler.current
        tasks = scheduler.tasks.to_h { |task| [task.fiber, task] }
        left = scheduler.waits.map { |wait| wait[:root] }.uniq
          .reject { |fiber| scheduler.home?(fiber) || scheduler.main_fiber.equal?(fiber) || tasks[fiber]&.background? }
        return if left.empty?

        names = left.map { |fiber| tasks[fiber] ? describe(tasks[fiber]) : "a fiber of Fiber.schedule" }
        raise LeftOver, "#{names.size} left over when the test had ended: #{names.join("; ")}\n" \
                        "#{Dump.new(scheduler).text(left)}"
      end

      private

      def describe(task)
        place = @places[task]
        "the task #{"#{task.name.inspect} " if task.name}started at #{place&.path}:#{place&.lineno}"
      end
    end
    private_constant :Places
  end
end
