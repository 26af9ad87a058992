# frozen_string_literal: true

module Heddle
  # What belongs to the fiber that calls Heddle.run, and what the block, which runs in another one, is to see and to
  # leave as if it ran there: the fiber-locals (Thread.current[:x]), the Fiber storage, and the instance variables of
  # the fiber. And what ActiveSupport and ActiveRecord keep by fiber, so that the block is in the transaction of its
  # caller.
  class Continuation
    # Makes it the Fiber storage of the current fiber, but for what is Heddle's own.
    # @param storage [Hash]
    def self.put_storage(storage)
      Fiber.current.storage&.each_key { |key| Fiber[key] = nil unless storage.key?(key) || OWN.include?(key) }
      storage.each { |key, value| Fiber[key] = value unless OWN.include?(key) || value.equal?(Fiber[key]) }
    end

    # In place of ActiveSupport::IsolatedExecutionState.context, which is the key of all that belongs to a request when
    # the isolation level is :fiber.
    module ActiveSupportContext
      # @return [Thread, Fiber]
      def context
        current = super
        current.instance_variable_get(CALLER) || current
      end
    end

    # The instance variable of a block's fiber.
    CALLER = :@heddle_caller

    # In the fiber that calls Heddle.run.
    def initialize
      if defined?(::ActiveSupport::IsolatedExecutionState)
        ::ActiveSupport::IsolatedExecutionState.singleton_class.prepend(ActiveSupportContext)
        @caller = Fiber.current.instance_variable_get(CALLER) || Fiber.current
      end
      @before = State.here
      @after = @storage = nil
    end

    # In the fiber of the block.
    def enter
      @before.put_into_place(State::NOTHING)
      Fiber.current.instance_variable_set(CALLER, @caller) if @caller
      yield
    ensure
      @after = State.here
      @storage = Fiber.current.storage
    end

    # In the fiber that has called Heddle.run, when the block has ended.
    def take_back
      return unless @after # its fiber has not begun

      @after.put_into_place(@before)
      Continuation.put_storage(@storage || {})
    end

    # The fiber-locals and instance variables of a fiber.
    State = Data.define(:locals, :variables) do
      # @return [State] that of the current fiber
      def self.here
        thread = Thread.current
        fiber = Fiber.current
        locals = thread.keys
        variables = fiber.instance_variables
        return self::NOTHING if locals.empty? && variables.empty?

        variables.delete(CALLER)
        new(locals.to_h { |key| [key, thread[key]] },
            variables.to_h { |name| [name, fiber.instance_variable_get(name)] })
      end

      # Makes it that of the current fiber.
      # @param before [State] what is there
      # @return [void]
      def put_into_place(before)
        return if equal?(before)

        thread = Thread.current
        fiber = Fiber.current
        before.locals.each_key { |key| thread[key] = nil unless locals.key?(key) }
        locals.each { |key, value| thread[key] = value }
        before.variables.each_key { |name| fiber.remove_instance_variable(name) unless variables.key?(name) }
        variables.each { |name, value| fiber.instance_variable_set(name, value) }
      end
    end
    State::NOTHING = State.new({}.freeze, {}.freeze)
    OWN = %i[heddle_scope].freeze
    private_constant :State, :OWN
  end
  private_constant :Continuation
end
