# frozen_string_literal: true

module Heddle
  # A hook that Heddle.on_spawn has registered.
  class SpawnHook
    class << self
      # @private
      # @return [Array<SpawnHook>] the hooks of this Ractor, always the same object
      def all = Ractor.current[:heddle_spawn_hooks] ||= []

      # @private
      # @return [Proc] the block of a new task with the code that the hooks put around it; the first one is outermost
      def wrap(task, block)
        all.reverse.reduce(block) { |inner, hook| hook.around(task, inner) }
      end

      # @private Registers a hook of Heddle's own parts for the blocks of Heddle.offload. It is called in the task, and
      #   returns nil, or a lambda that is called on the other thread, with the work.
      def on_offload(&hook) = offload_hooks << hook

      # @private
      # @return [#call] the block of Heddle.offload with the code that these hooks put around it
      def wrap_offload(block)
        offload_hooks.reduce(block) do |inner, hook|
          wrapper = hook.call
          wrapper ? -> { wrapper.call(inner) } : inner
        end
      end

      private

      def offload_hooks = Ractor.current[:heddle_offload_hooks] ||= []
    end

    # @private
    def initialize(hook)
      @hook = hook
      self.class.all << self
    end

    # Removes the hook. Running tasks keep the code that it has put around them.
    #
    # @return [void]
    def remove
      self.class.all.delete(self)
      nil
    end

    # @private
    def around(task, block)
      wrapper = @hook.call(task)
      return block unless wrapper.respond_to?(:call)

      lambda do |*arguments|
        called = value = nil
        Task.match_apart(block)
        wrapper.call(-> { (called = true) && value = block.call(*arguments) })
        raise Error, "a hook of Heddle.on_spawn has not called the work of its task" unless called

        value
      end
    end
  end

  class << self
    # Registers a block that is called for each new task, where Heddle.spawn is called. If it returns an object with a
    # method call, this is called in the task, with the work of the task, which it has to call. So a framework can pass
    # the state of the spawner to a task (tasks inherit Fiber storage, but not Thread.current[:x]), and a tracer can
    # record when a task is made, when it starts, and how it ends. The main block of Heddle.run does not count as a new
    # task.
    #
    # Without a hook there is no cost.
    #
    # @example
    #   Heddle.on_spawn do |task|
    #     request_id = Thread.current[:request_id]
    #     lambda do |work|
    #       Thread.current[:request_id] = request_id
    #       work.call
    #     end
    #   end
    #
    # @yieldparam task [Heddle::Task] the task, which has not started yet
    # @yieldreturn [#call, Object]
    # @return [Heddle::SpawnHook] the hook, which can be removed
    # @raise [ArgumentError] without a block
    def on_spawn(&hook)
      Check.refuse("Heddle.on_spawn needs a block") unless hook

      SpawnHook.new(hook)
    end

    # @return [Heddle::Task, nil] the task that runs here; nil outside of tasks
    def current_task = Task.current
  end
end
