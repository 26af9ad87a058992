# frozen_string_literal: true

module Heddle
  module CoreExt
    # Makes Addrinfo.getaddrinfo and Socket.getaddrinfo respect their flags. Ruby passes only the name to the scheduler,
    # and then looks up the numbers that it gets, although the flags are meant for the name. So the whole lookup is made
    # on a worker thread.
    module LookupFlags
      # These flags do not change how a name is resolved.
      OF_NO_NAME = ::Socket::AI_PASSIVE | ::Socket::AI_NUMERICHOST | ::Socket::AI_NUMERICSERV

      # Calls the block on a worker thread, if the flags concern the name.
      def self.heed(flags, &)
        concerned = flags.is_a?(Integer) && (flags & ~OF_NO_NAME).nonzero?
        concerned && Scheduler.current ? Heddle.offload(&) : yield
      end

      # For the class Addrinfo.
      module OfAddrinfo
        # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-c-getaddrinfo
        def getaddrinfo(*arguments, **)
          LookupFlags.heed(arguments[5]) { __heddle_flagged_getaddrinfo(*arguments, **) }
        end
      end

      # For the class Socket.
      module OfSocket
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getaddrinfo
        def getaddrinfo(*arguments) = LookupFlags.heed(arguments[5]) { __heddle_flagged_getaddrinfo(*arguments) }
      end
    end
  end
end
