# frozen_string_literal: true

require_relative "async_queries"
require_relative "query_counts"
require_relative "request_state"

module Heddle
  # Support for Rails, or for ActiveSupport alone, loaded by `require "heddle/rails"`. guides/rails.md shows how to use
  # it.
  module Rails
    @inherit_current = true

    class << self
      # Does a task get a copy of the state that the request keeps in its fiber? This state is Current attributes,
      # Time.zone, I18n.locale, the tags of the log, and the role and shard of ActiveRecord's `connected_to`. Rails sets
      # it from `config.heddle.inherit_current`. Connections and transactions are never inherited.
      #
      # @return [Boolean] true at first
      attr_accessor :inherit_current
    end

    # Prepares and cleans up around each task that Heddle.spawn starts, and around each block of Heddle.offload.
    #
    # @private
    module Inheritance
      class << self
        # Set to ActiveRecord::Base when the program has loaded it.
        attr_writer :base

        # @return [void]
        def start = @start ||= Heddle.on_spawn { around_work }.tap { SpawnHook.on_offload { around_work } }

        private

        # @return [Proc, nil] nil with isolation by thread: then all tasks have the same state and the same connection
        def around_work
          return Isolation.warn_once unless Isolation.by_fiber?

          state = RequestState.new if Rails.inherit_current
          counts = QueryCounts.here
          asynchronous = AsyncQueries.here?
          lambda do |work|
            state&.put_into_place
            asynchronous ? AsyncQueries.with_session(&work) : work.call
          ensure
            counts&.add_own
            release_connections
          end
        end

        # Releases the connections of a task. A connection that was leased for good (Model.lease_connection) would stay
        # in use until the pool finds its fiber dead. For a task without a connection no entry is added to the pools.
        def release_connections
          return unless @base

          owner = ::ActiveSupport::IsolatedExecutionState.context
          @base.connection_handler.connection_pool_list(:all).each do |pool|
            pool.release_connection if pool.connections.any? { |one| one.owner.equal?(owner) }
          end
        end
      end
    end
  end
end
