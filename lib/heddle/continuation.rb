# frozen_string_literal: true

module Heddle
  # What belongs to the fiber that calls Heddle.run, and what the block, which runs in another one, is to see and to
  # leave as if it ran there: the fiber-locals (Thread.current[:x]), the Fiber storage, and the instance variables of
  # the fiber, where ActiveSupport keeps what belongs to a request.
  class Continuation
    # Makes it the Fiber storage of the current fiber, but for what is Heddle's own.
    # @param storage [Hash]
    def self.put_storage(storage)
      gone = Fiber.current.storage.to_h.keys - storage.keys
      gone.each { |key| Fiber[key] = nil unless OWN.include?(key) }
      storage.each { |key, value| Fiber[key] = value unless OWN.include?(key) || value.equal?(Fiber[key]) }
    end

    # In the fiber that calls Heddle.run.
    def initialize
      @before = State.new
      @after = nil
    end

    # In the fiber of the block.
    def enter
      @before.put_into_place(nil)
      yield
    ensure
      @after = State.new(Fiber.current.storage || {})
    end

    # In the fiber that has called Heddle.run, when the block has ended.
    def take_back
      @after&.put_into_place(@before)
    end

    # What there is in the current fiber.
    class State
      NOTHING = {}.freeze
      private_constant :NOTHING

      attr_reader :locals, :storage, :variables

      # @param storage [Hash, nil] nil: need not be known, for it is inherited
      def initialize(storage = nil)
        thread = Thread.current
        fiber = Fiber.current
        @locals = to_hash(thread.keys) { |key| thread[key] }
        @variables = to_hash(fiber.instance_variables) { |name| fiber.instance_variable_get(name) }
        @storage = storage
      end

      # Makes it that of the current fiber.
      # @param before [State, nil] what is there, if anything
      def put_into_place(before)
        thread = Thread.current
        fiber = Fiber.current
        (before.locals.keys - @locals.keys).each { |key| thread[key] = nil } if before
        @locals.each { |key, value| thread[key] = value }
        (before.variables.keys - @variables.keys).each { |name| fiber.remove_instance_variable(name) } if before
        @variables.each { |name, value| fiber.instance_variable_set(name, value) }
        Continuation.put_storage(@storage) if @storage
      end

      private

      def to_hash(keys)
        keys.empty? ? NOTHING : keys.to_h { |key| [key, yield(key)] }
      end
    end
    OWN = %i[heddle_scope heddle_task].freeze
    private_constant :State, :OWN
  end
  private_constant :Continuation
end
