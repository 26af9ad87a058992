# frozen_string_literal: true

module Heddle
  class Server
    # Holds the connections between two requests. Each has a descriptor in an epoll set of the kernel and an entry here,
    # but no task. A connection that has been idle for too long is closed.
    #
    # @private
    class IdleConnections
      # @param timeout [Numeric] seconds
      # @param leave [#call] closes a connection
      # @yield [connection] a connection that can be read; in the task of {#run}
      def initialize(timeout, leave:, &ready)
        @timeout = timeout
        @leave = leave
        @ready = ready
        @set = IO.for_fd(Epoll.create, "r")
        @waiting = {} # descriptor => [connection, until], in the order in which they are closed
      end

      def size = @waiting.size

      # @param connection [Connection]
      def add(connection)
        fd = Epoll.add(@set, connection.socket)
        @waiting[fd] = [connection, now + @timeout]
        @alarm&.push(true) if @waiting.size == 1
      end

      # Waits for the connections until {#close}.
      def run
        @alarm = Thread::Queue.new
        until @set.closed?
          if @waiting.empty?
            @alarm.pop
            next
          end
          wake(Epoll.take(@set)) if @set.wait_readable([first_limit - now, 0].max)
          close_overdue
        end
      rescue IOError
        raise unless @set.closed?
      end

      # Hands on all connections that can be read by now.
      def wake_all
        until @set.closed? || (fds = Epoll.take(@set)).empty?
          wake(fds)
        end
      end

      # Closes the connection that has been idle for the longest time, to make room for another one.
      #
      # @return [Boolean] whether there was an idle connection
      def close_oldest
        fd, (connection,) = @waiting.shift
        return false unless fd

        Epoll.delete(@set, fd)
        @leave.call(connection)
        true
      end

      # Closes all of them, and ends {#run}.
      def close
        close_oldest until @waiting.empty?
        @set.close
        @alarm&.push(true)
      end

      private

      def now = Clock.now
      def first_limit = @waiting.first.last.last

      def wake(fds)
        fds.each do |fd|
          connection, = @waiting.delete(fd)
          @ready.call(connection) if connection
        end
      end

      def close_overdue
        time = now
        close_oldest while !@waiting.empty? && first_limit <= time
      end
    end
  end
end
