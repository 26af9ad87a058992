# frozen_string_literal: true

module Heddle
  module CoreExt
    # Addrinfo.getaddrinfo and Socket.getaddrinfo with flags. Ruby tells the scheduler only the name, and then looks up
    # the numbers that it gets: the flags are meant for the name. So the whole lookup is made on a worker thread.
    module LookupFlags
      # They say nothing of how a name is resolved.
      OF_NO_NAME = ::Socket::AI_PASSIVE | ::Socket::AI_NUMERICHOST | ::Socket::AI_NUMERICSERV

      # Calls the block on a worker thread, if the flags concern the name.
      def self.heed(flags, &)
        concerned = flags.is_a?(Integer) && (flags & ~OF_NO_NAME).nonzero?
        concerned && Scheduler.current ? Heddle.offload(&) : yield
      end

      # Of the class Addrinfo.
      module OfAddrinfo
        # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-c-getaddrinfo
        def getaddrinfo(*arguments, **)
          LookupFlags.heed(arguments[5]) { __heddle_flagged_getaddrinfo(*arguments, **) }
        end
      end

      # Of the class Socket.
      module OfSocket
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getaddrinfo
        def getaddrinfo(*arguments) = LookupFlags.heed(arguments[5]) { __heddle_flagged_getaddrinfo(*arguments) }
      end
    end
  end
end
