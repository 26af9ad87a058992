# frozen_string_literal: true

module Heddle
  class IdleSet
    # A set where the kernel offers none, neither by epoll nor by kqueue: each wait hands all sockets to IO.select. So a
    # wait costs more the more sockets are in the set.
    class Selected
      # The calls of Poller.
      class << self
        # @return [Integer] the descriptor
        # @raise [Errno::EPERM] if it is a regular file
        def add(set, io)
          raise Errno::EPERM if io.stat.file?

          set.ios[io.fileno] = io
          set.wake
          io.fileno
        end

        def ring(set, _bell) = set.wake

        def delete(set, descriptor) = set.ios.delete(descriptor)

        def take(set, objects)
          set.ready(0).filter_map do |io|
            set.ios.delete(io.fileno)
            objects.delete(io.fileno)
          end
        end
      end

      attr_reader :ios

      def initialize
        @ios = {}
        @reader, @writer = IO.pipe
        @waiting = 0
      end

      def closed? = @reader.closed?

      def close
        @reader.close
        @writer.close
      end

      # Waits until a socket of the set can be read. It begins anew when the set has changed.
      def wait_readable(timeout)
        @waiting += 1
        limit = timeout && (Clock.now + timeout)
        until ready(limit && [limit - Clock.now, 0].max).any? || (limit && Clock.now >= limit)
          @reader.read_nonblock(4096, exception: false)
        end
      ensure
        @waiting -= 1
        wake if @waiting.positive? && !closed? # the notice was perhaps for another task, too
      end

      # Ends the waits, which then see the sockets that the set has now.
      def wake = @writer.write_nonblock(".", exception: false)

      # @return [Array<IO>] the sockets that can be read; empty after the time, and when the set has changed
      def ready(timeout)
        @ios.delete_if { |_, io| io.closed? }
        found, = IO.select([@reader, *@ios.values], nil, nil, timeout)
        (found || []) - [@reader]
      rescue IOError # one of them was closed meanwhile
        closed? ? raise : []
      end
    end
    private_constant :Selected
  end
end
