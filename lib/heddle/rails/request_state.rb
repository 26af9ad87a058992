# frozen_string_literal: true

module Heddle
  module Rails
    # A copy of the state that a request, or a job, keeps in its fiber: it is made where a task is spawned, and put into
    # place in the task. Changes that one of them makes later are not visible to the other. It contains no connections,
    # because they belong to one task.
    #
    # @private
    class RequestState
      # Keys of ActiveSupport::IsolatedExecutionState.
      KEYS = %i[time_zone beginning_of_week
                active_record_connected_to_stack active_record_prohibit_shard_swapping].freeze
      TAGS = "activesupport_tagged_logging_tags:"
      private_constant :KEYS, :TAGS

      # @return [Hash] the whole state; ActiveSupport 8.1 keeps the state of a block of Heddle.run in its own fiber,
      #   older versions ask for the context, which is the fiber of the caller
      def self.values_here
        [Fiber.current, ::ActiveSupport::IsolatedExecutionState.context]
          .filter_map(&:active_support_execution_state).first || {}
      end

      def initialize
        state = ::ActiveSupport::IsolatedExecutionState
        @values = KEYS.filter_map { |key| [key, state[key].dup] if state.key?(key) }
        @tags = log_tags
        @context = ::ActiveSupport::ExecutionContext.to_h
        @current = current_instances.to_h { |key, instance| [key, copy_of(instance)] }
        @locale = ::I18n.locale if defined?(::I18n)
      end

      # Called in the task.
      # @return [void]
      def put_into_place
        state = ::ActiveSupport::IsolatedExecutionState
        @values.each { |key, value| state[key] = value }
        @tags.each { |key, stack| state[key] = stack }
        ::ActiveSupport::ExecutionContext.set(**@context) unless @context.empty?
        current_instances.update(@current) unless @current.empty?
        ::I18n.locale = @locale if @locale && ::I18n.locale != @locale
      end

      private

      # @return [Hash{Symbol => ActiveSupport::CurrentAttributes}] the instances of this fiber
      def current_instances = ::ActiveSupport::CurrentAttributes.send(:current_instances)

      def copy_of(instance)
        instance.dup.tap { |copy| copy.attributes = instance.attributes.dup }
      end

      # @return [Hash{String => ActiveSupport::TaggedLogging::TagStack}]
      def log_tags
        self.class.values_here.select { |key, _| key.to_s.start_with?(TAGS) }.transform_values do |stack|
          stack.class.new.tap { |copy| copy.push_tags(stack.tags.dup) }
        end
      end
    end
  end
end
