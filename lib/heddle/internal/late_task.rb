# frozen_string_literal: true

module Heddle
  using Internal

  # A task that starts later than it is spawned. Until then it has no fiber. It gets the arguments and the Fiber storage
  # of its spawner. A subclass says where it waits.
  class LateTask < Task
    def initialize(scope, name, background, isolated)
      super
      @scheduler = scope.scheduler # the spawner may be another thread
      @in_line = false # stays true if the task ends there
      @arguments = @block = @storage = nil
    end

    # Puts the task in line, with everything that it takes from its spawner.
    def line_up(arguments, block)
      @in_line = true
      @arguments = arguments
      @block = block
      @storage = Fiber.current.storage.to_h
      put_in_line
    end

    # Starts the task when its turn has come.
    def start_from_line
      @in_line = false
      @scheduler.fiber do
        put_storage
        execute(@arguments, &@block)
      end
      raise_early
    end

    # Ends the task without having started it.
    def end_in_line(error)
      @in_line = true
      fail_with(error, @block)
      Line.undisturbed { ended }
    end

    # Another thread may cancel the task at the moment when it starts: the cancel is raised after the start.
    def raise_into(error)
      if take_out_of_line
        end_in_line(error)
        return self
      end

      super
    end

    def ended
      super
      @arguments = @block = @storage = nil
    end

    private

    # Copies the Fiber storage of the spawner to its fiber, without the entries of Heddle.
    def put_storage
      Fiber.current.storage&.each_key { |key| Fiber[key] = nil unless @storage.key?(key) || key == :heddle_scope }
      @storage.each { |key, value| Fiber[key] = value unless key == :heddle_scope }
      @storage = nil
    end
  end
  private_constant :LateTask
end
