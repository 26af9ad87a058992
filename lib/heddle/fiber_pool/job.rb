# frozen_string_literal: true

module Heddle
  using Internal

  class FiberPool
    # A task that may have to wait in line before it starts. Until then it has no fiber.
    class Job < Task
      def initialize(scope, name, pool)
        super(scope, name, false, false)
        @pool = pool
        @in_line = false # stays so when it ends there
        @arguments = @block = @storage = nil
      end

      # @return [Symbol] as of any task; :waiting while it is in line
      def status = @in_line && !@finished ? :waiting : super

      # Puts it in line, with what it takes from its spawner.
      def line_up(arguments, block)
        @in_line = true
        @arguments = arguments
        @block = block
        @storage = Fiber.current.storage.to_h
        @pool.put_in_line(self)
      end

      # Its turn has come.
      def start_from_line
        @in_line = false
        @scheduler.fiber do
          put_storage
          execute(@arguments, &@block)
        end
        strike(@early) if @early
      end

      # It ends without having been started.
      def end_in_line(error)
        @in_line = true
        fail_with(error, @block)
        Line.undisturbed { ended }
      end

      # Another thread may cancel it in the moment in which it starts: this is seen to when it has.
      def strike(error)
        if @pool.take_out_of_line(self)
          end_in_line(error)
          return self
        end

        super
      end

      def ended
        super
        @arguments = @block = @storage = nil
        @pool.job_ended(self) unless @in_line
      end

      private

      # Makes the Fiber storage of its spawner that of its fiber, but for what is Heddle's own.
      def put_storage
        Fiber.current.storage&.each_key { |key| Fiber[key] = nil unless @storage.key?(key) || key == :heddle_scope }
        @storage.each { |key, value| Fiber[key] = value unless key == :heddle_scope }
        @storage = nil
      end
    end
    private_constant :Job
  end
end
