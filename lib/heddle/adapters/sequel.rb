# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("sequel", ">= 5", "< 6")

  module Adapters
    # Sequel turns a cancel or a Timeout into a DatabaseConnectionError while it connects, as if the server had failed.
    # With the adapter the exception stays what it is.
    #
    # With PostgreSQL, Sequel notes a named statement as prepared when the server has answered. If a cancel or a Timeout
    # ends the wait for this answer, Sequel prepares the statement once more, which the server refuses from then on. The
    # adapter asks the server for such a statement, and removes it first.
    #
    # @private
    module Sequel
      # Takes the place of a method of Sequel::ConnectionPool.
      module Pool
        def make_new(server)
          connection = super
          connection.extend(Statements) if defined?(::PG) && connection.is_a?(::PG::Connection)
          connection
        rescue ::Sequel::DatabaseConnectionError => e
          interrupt = e.wrapped_exception
          raise if interrupt.nil? || interrupt.is_a?(StandardError) || !Adapters.task?

          raise interrupt
        end
      end

      # For a connection to PostgreSQL.
      module Statements
        def prepare(name, ...)
          return super unless Adapters.task?

          heddle_remove(name) if @heddle_open&.key?(name)
          (@heddle_open ||= {})[name] = true
          begin
            result = super
          rescue ::PG::ServerError => e # it is an answer, too
            raise
          ensure
            @heddle_open.delete(name) if result || e
          end
        end

        private

        def heddle_remove(name)
          found = exec_params("SELECT 1 FROM pg_prepared_statements WHERE name = $1", [name])
          exec("DEALLOCATE #{quote_ident(name)}") if found.ntuples.positive?
        end
      end

      Adapters.prepend_to("sequel", ::Sequel::ConnectionPool, Pool)
    end
  end
end
