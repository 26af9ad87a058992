# frozen_string_literal: true

module Heddle
  using Internal

  class FiberPool
    # A task that may have to wait in line before it starts. Until then it has no fiber.
    class Job < Task
      def initialize(scope, name, pool)
        super(scope, name, false, false)
        @pool = pool
        @in_line = false # stays true if the job ends there
        @arguments = @block = @storage = nil
      end

      # @return [Symbol] as of any task; :waiting while it is in line
      def status = @in_line && !@finished ? :waiting : super

      # Puts the job in line, with everything that it takes from its spawner.
      def line_up(arguments, block)
        @in_line = true
        @arguments = arguments
        @block = block
        @storage = Fiber.current.storage.to_h
        @pool.put_in_line(self)
      end

      # Starts the job when its turn has come.
      def start_from_line
        @in_line = false
        @scheduler.fiber do
          put_storage
          execute(@arguments, &@block)
        end
        strike(@early) if @early
      end

      # Ends the job without having started it.
      def end_in_line(error)
        @in_line = true
        fail_with(error, @block)
        Line.undisturbed { ended }
      end

      # Another thread may cancel the job at the moment when it starts: the cancel is raised after the start.
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

      # Copies the Fiber storage of the spawner to its fiber, without the entries of Heddle.
      def put_storage
        Fiber.current.storage&.each_key { |key| Fiber[key] = nil unless @storage.key?(key) || key == :heddle_scope }
        @storage.each { |key, value| Fiber[key] = value unless key == :heddle_scope }
        @storage = nil
      end
    end
    private_constant :Job
  end
end
