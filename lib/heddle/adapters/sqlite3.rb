# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  # Older versions do not expect an exception in the wait for a lock.
  Adapters.load_library("sqlite3", ">= 2.10", "< 3")

  module Adapters
    # Lets other tasks run while a database is locked by another connection. With busy_timeout= SQLite sleeps in C, and
    # the task that could release the lock cannot go on. The adapter calls busy_handler_timeout= instead, which sleeps
    # in Ruby.
    #
    # A cancel or a timeout ends the wait for the lock, and the statement has done nothing. A statement that computes or
    # reads from the disk holds up all threads of the process as before.
    #
    # When an exception that is not a StandardError ends its block, such as a cancel or a timeout,
    # SQLite3::Database#transaction commits what the block has done so far. With the adapter it rolls back.
    #
    # @private
    module SQLite3
      # Takes the place of methods of SQLite3::Database.
      module Database
        def busy_timeout=(milliseconds)
          self.busy_handler_timeout = milliseconds
        end

        def busy_timeout(milliseconds) = self.busy_handler_timeout = milliseconds

        # The handler may let another task run, and that task must not use the same connection meanwhile.
        def busy_handler(handler = nil, &block)
          handler ||= block
          return super unless handler

          super() do |count|
            @heddle_waiting = Fiber.current
            handler.call(count)
          ensure
            @heddle_waiting = nil
          end
        end

        def transaction(mode = nil)
          return super unless block_given? && Adapters.task?

          before = $!
          super do
            yield(self)
          ensure
            @heddle_torn = !$!.equal?(before) || Thread.current.status == "aborting"
          end
        end

        # Also checks at the end of the block, because sqlite3 does not know that the transaction was interrupted.
        def commit
          return super unless @heddle_torn

          @heddle_torn = false
          transaction_active? && rollback
        end

        def rollback
          @heddle_torn = false
          super
        end

        def prepare(*)
          heddle_check
          super
        end

        # @raise [SQLite3::MisuseException] while another task waits for a lock with this connection
        def heddle_check
          return if @heddle_waiting.nil? || @heddle_waiting.equal?(Fiber.current)

          raise ::SQLite3::MisuseException,
                "another task waits for a lock with this SQLite3::Database: each needs its own"
        end
      end

      # Takes the place of methods of SQLite3::Statement.
      module Statement
        def step
          @connection&.heddle_check
          super
        end
      end

      Adapters.prepend_to("sqlite3", ::SQLite3::Database, Database)
      Adapters.prepend_to("sqlite3", ::SQLite3::Statement, Statement)
    end
  end
end
