# frozen_string_literal: true

require_relative "../connect"

module Heddle
  module CoreExt
    # TCPSocket.new(hostname) waits in a select that no hook sees, from Ruby 3.4 on: every fiber of the thread stands
    # still. Under Heddle the name is looked up, and its addresses are raced, by Heddle::Connect.
    module TCPSocketConnect
      # @see https://docs.ruby-lang.org/en/master/TCPSocket.html#method-c-new
      def initialize(*arguments, **options)
        scheduler = Fiber.current_scheduler
        if scheduler.is_a?(Scheduler) && Connect.by_name?(arguments, options)
          target = Connect::TCPSocketTarget.new(arguments, options)
          target.open(self, scheduler) { |*own, **rest| super(*own, **rest) }
        else
          super
        end
      end
    end

    # Socket.tcp(hostname) starts two threads for each name.
    module SocketTCP
      # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-tcp
      def tcp(*arguments, **options)
        scheduler = Fiber.current_scheduler
        return super unless scheduler.is_a?(Scheduler) && Connect.by_name?(arguments, options)

        target = Connect::SocketTarget.new(arguments, options)
        found = target.find(scheduler)
        return super(*found, connect_timeout: target.attempt_timeout) if found.is_a?(Array)

        socket = Connect::Race.new(scheduler, target, found).run
        return socket unless block_given?

        begin
          yield socket
        ensure
          socket.close
        end
      end
    end
  end
end

TCPSocket.prepend(Heddle::CoreExt::TCPSocketConnect)
Socket.singleton_class.prepend(Heddle::CoreExt::SocketTCP)
