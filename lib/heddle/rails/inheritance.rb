# frozen_string_literal: true

require_relative "query_counts"
require_relative "request_state"

module Heddle
  # What `require "heddle/rails"` adds, with Rails or with ActiveSupport alone. guides/rails.md shows how to use it.
  module Rails
    @inherit_current = true

    class << self
      # Whether a task gets a copy of what the request keeps in its fiber: Current attributes, Time.zone, I18n.locale,
      # the tags of the log, and the role and shard of ActiveRecord's `connected_to`. Rails sets it from
      # `config.heddle.inherit_current`. Connections and transactions are never inherited.
      #
      # @return [Boolean] true at first
      attr_accessor :inherit_current
    end

    # What is done around each task that Heddle.spawn starts.
    #
    # @private
    module Inheritance
      class << self
        # Set to ActiveRecord::Base when the program has loaded it.
        attr_writer :base

        # @return [void]
        def start = @start ||= Heddle.on_spawn { around_task }

        private

        # @return [Proc, nil] by thread all tasks have the same state and the same connection anyhow
        def around_task
          return Isolation.warn_once unless Isolation.by_fiber?

          state = RequestState.new if Rails.inherit_current
          counts = QueryCounts.here
          lambda do |work|
            state&.put_into_place
            work.call
          ensure
            counts&.add_own
            release_connections
          end
        end

        # One that was leased for good (Model.lease_connection) would stay in use until the pool finds its fiber dead. A
        # task without a connection must not cost the pools an entry.
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
