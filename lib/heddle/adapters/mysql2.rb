# frozen_string_literal: true

require "socket"
require_relative "../adapters"

module Heddle
  Adapters.load_library("mysql2", ">= 0.5.5", "< 0.6")

  module Adapters
    # mysql2 waits with Ruby for the first bytes of an answer, and in C for everything else. In tasks these other waits
    # happen on another thread: connecting, the rest of an answer, rows that are streamed, prepared statements, ping and
    # select_db.
    #
    # A cancel shuts the connection down, so that the call ends at once. The next user of the client gets a
    # Mysql2::Error (or a new connection, with <tt>reconnect: true</tt>). Only a connection attempt goes on to its end,
    # for at most +connect_timeout+. A timeout around +query+ is raised at the end of the query, as in plain mysql2: use
    # +read_timeout+.
    #
    # When the garbage collector frees a prepared statement, or a result of one, the library reads from the connection
    # until no answer is under way. It takes the rows of another query, and the whole process waits for the network. So
    # no statement and no result is freed while a call is under way, or rows are streamed (Kept).
    #
    # @private
    module Mysql2
      # A statement of at most this number of bytes is sent at once: the buffer of a socket has room for it.
      SENT_AT_ONCE = 16_384
      # How many streamed rows are fetched before the block asks for them.
      ROWS_AHEAD = 100

      # The one call of a client that is under way.
      class Call
        # @param client [Mysql2::Client]
        def initialize(client)
          @client = client
          @fiber = Fiber.current
        end

        # Waits for an answer.
        # @return [Boolean] has the first part of the answer arrived?
        def wait(seconds) = !socket.wait_readable(seconds).nil?

        # Runs the block on another thread, where a cancel makes it end.
        #
        # @param rows [Thread::SizedQueue, nil] a queue on which the block may also wait
        def offload(rows = nil, &)
          socket # the current one
          stop = lambda do
            rows&.close
            shutdown
          end
          Heddle.offload(stop:, lasting: !rows.nil?, &)
        end

        # Makes the call end. The connection cannot be used afterwards.
        def shutdown
          socket.shutdown
        rescue SystemCallError, ::Mysql2::Error
          nil # it is broken already
        end

        def close = @socket&.close

        # @return [String]
        def user = @fiber.inspect

        private

        # Duplicates the socket: the library may close its own descriptor meanwhile, and another connection may get the
        # number.
        def socket
          @socket ||= Socket.for_fd(@client.socket).tap { |one| one.autoclose = false }.dup
        end
      end

      # The prepared statements of a client, and their results.
      class Kept
        def initialize
          @all = ObjectSpace::WeakMap.new
          @count = 0 # the objects that were alive at the last check, and the new ones
          @held = nil
        end

        # @param object [Mysql2::Statement, Mysql2::Result]
        def add(object)
          @all[object] = true
          @count += 1
        end

        # Keeps all objects alive from now on. Objects that the garbage collector has found to be unused, and will free
        # at any time, are freed at once.
        # @return [void]
        def hold
          return if @count.zero?

          GC.start(full_mark: false, immediate_sweep: true) if @all.size < @count
          @held = @all.keys
          @count = @held.size
        end

        # @return [void]
        def release = @held = nil
      end

      # Takes the place of methods of Mysql2::Client.
      module Client
        def query(sql, options = {})
          return super if !Adapters.task? || closed? || @query_options.merge(options)[:async]

          heddle_call do |call|
            result = Thread.handle_interrupt(::Mysql2::Util::TIMEOUT_ERROR_NEVER) do
              long = sql.is_a?(String) && sql.bytesize > SENT_AT_ONCE
              long ? call.offload { super } : heddle_query(call) { super(sql, options.merge(async: true)) }
            end
            heddle_stream(result) if @query_options.merge(options)[:stream]
            result
          end
        end

        def prepare(sql)
          return super unless Adapters.task?

          heddle_call { |call| call.offload { super } }.tap { |statement| heddle_kept.add(statement) }
        end

        def ping
          return super if !Adapters.task? || closed?

          heddle_call { |call| call.offload { super } }
        end

        def select_db(name)
          return super unless Adapters.task?

          heddle_call { |call| call.offload { super } }
        end

        # Ends a call that is under way first, with an error.
        def close
          return super unless @heddle_call

          @heddle_closes = true
          @heddle_call.shutdown
          nil
        end

        # Allows one call at a time: the library does not clean up after calls that it did not expect to be interrupted.
        # @yieldparam call [Call]
        def heddle_call
          raise ::Mysql2::Error, "This connection is in use by: #{@heddle_call.user}" if @heddle_call

          begin
            @heddle_call = call = Call.new(self)
            heddle_kept.hold
            result = yield(call)
          ensure
            @heddle_call = nil
            heddle_kept.release unless @heddle_streams
            call.close
            close if @heddle_closes
          end
          case result
          when ::Mysql2::Result, ::Mysql2::Statement then result.instance_variable_set(:@heddle_client, self)
          end
          result
        end

        def heddle_kept = @heddle_kept ||= Kept.new

        # @param result [Mysql2::Result, nil] the result whose rows arrive one by one; nil: all rows have arrived
        def heddle_stream(result)
          @heddle_streams = result
          heddle_kept.hold if result
        end

        private

        # No interrupt can end a connection attempt, but it ends by itself.
        def connect(*)
          return super unless Adapters.task?

          unwanted = false
          Heddle.offload(stop: -> { unwanted = true }) { super.tap { close if unwanted } }
        end

        def heddle_query(call)
          taken = false
          yield
          call.wait(read_timeout) or raise ::Mysql2::Error::TimeoutError, <<~TEXT.chomp
            Timeout waiting for a response from the last query. (waited #{read_timeout} seconds)
          TEXT
          call.offload { (taken = true) && async_result }
        ensure
          heddle_abandon(call) unless taken # a cancel may come before the other thread begins
        end

        # Makes the library see that no answer will arrive.
        def heddle_abandon(call)
          call.shutdown
          async_result
        rescue ::Mysql2::Error
          nil
        end
      end

      # Takes the place of methods of Mysql2::Statement.
      module Statement
        def execute(*, **)
          return super unless @heddle_client && Adapters.task?

          result = @heddle_client.heddle_call { |call| call.offload { super } }
          @heddle_client.heddle_kept.add(result) if result
          result
        end

        # This call waits for no answer.
        def close
          return super unless @heddle_client && Adapters.task?

          @heddle_client.heddle_call { super }
        end
      end

      # Takes the place of methods of Mysql2::Result.
      module Result
        def each(*options, &block)
          return super unless block && @heddle_client && @query_options[:stream] && Adapters.task?

          @heddle_client.heddle_call do |call|
            rows = Thread::SizedQueue.new(ROWS_AHEAD)
            fetching = Heddle.spawn(isolated: true) do
              call.offload(rows) { super(*options) { |row| rows << row } }
            ensure
              rows.close
            end
            while (row = rows.pop)
              yield(row)
            end
            fetching.value.tap { @heddle_client.heddle_stream(nil) }
          ensure
            fetching&.cancel&.wait
          end
        end
      end

      Adapters.prepend_to("mysql2", ::Mysql2::Client, Client)
      Adapters.prepend_to("mysql2", ::Mysql2::Statement, Statement)
      Adapters.prepend_to("mysql2", ::Mysql2::Result, Result)
    end
  end
end
