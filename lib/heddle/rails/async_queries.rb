# frozen_string_literal: true

module Heddle
  module Rails
    # Lets a task use ActiveRecord's asynchronous queries (load_async) where its spawner may use them. A request has a
    # session for them, which Rails keeps by fiber; without one ActiveRecord 8 raises an error. A task gets a session of
    # its own, which ends with the task.
    #
    # @private
    module AsyncQueries
      KEY = :active_record_asynchronous_queries_tracker
      private_constant :KEY

      # @return [Boolean] does this fiber have a session? (ActiveRecord 7 needs none)
      def self.here?
        tracker = ::ActiveSupport::IsolatedExecutionState[KEY]
        !tracker.nil? && [*tracker.instance_variable_get(:@stack)].any?
      end

      # Called in the task.
      # @return [void]
      def self.with_session
        tracker = ::ActiveRecord::Base.asynchronous_queries_tracker
        tracker.start_session
        begin
          yield
        ensure
          tracker.finalize_session
        end
      end
    end
    private_constant :AsyncQueries
  end
end
