# frozen_string_literal: true

module Heddle
  module Rails
    # Adds the queries of a task to those of its spawner: in the log line of a request, and in the payload of
    # process_action.action_controller, which monitoring reads. Rails keeps the counts by fiber. An object is made where
    # the task is spawned, and receives the counts of the task when it ends. Its time counts as that of asynchronous
    # queries (load_async): it does not take time away from the rest of the request.
    #
    # @private
    class QueryCounts
      NUMBERS = %i[queries_count cached_queries_count].freeze
      private_constant :NUMBERS

      # @return [QueryCounts, nil] the counts of this fiber; nil: ActiveRecord is not loaded
      def self.here = (new(::ActiveRecord::RuntimeRegistry) if defined?(::ActiveRecord::RuntimeRegistry))

      def initialize(registry)
        @registry = registry
        # ActiveRecord 8 has an object for the counts; in earlier versions they are values of the state of the fiber.
        if registry.respond_to?(:stats)
          @stats = registry.stats
        else
          registry.sql_runtime # makes the state
          @state = RequestState.values_here
        end
      end

      # Called in the task, at its end.
      # @return [void]
      def add_own
        own = @stats ? @registry.stats : @registry
        add(:sql_runtime, own.sql_runtime)
        add(:async_sql_runtime, own.sql_runtime)
        NUMBERS.each { |name| add(name, own.public_send(name)) }
      end

      private

      def add(name, value)
        return @stats.public_send(:"#{name}=", @stats.public_send(name) + value) if @stats

        key = :"active_record_#{name}"
        @state[key] = (@state[key] || 0) + value
      end
    end
  end
end
