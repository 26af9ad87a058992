# frozen_string_literal: true

require_relative "file_wait"

module Heddle
  module CoreExt
    # The names of addresses. Ruby asks the system for them in a thread of its own, for which every fiber has to wait;
    # here one of the workers for names does it, and only the fiber that wants to know waits.
    module ReverseLookup
      # For Addrinfo.
      module ForAddrinfo
        # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-i-getnameinfo
        def getnameinfo(flags = nil)
          scheduler = ReverseLookup.scheduler_for(flags)
          return super unless scheduler && ip?

          flags = flags.to_i | (socktype == Socket::SOCK_DGRAM ? Socket::NI_DGRAM : 0)
          scheduler.__send__(:name_of, to_sockaddr, flags) || super
        end
      end

      # For Socket.
      module ForSocket
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getnameinfo
        def getnameinfo(address, flags = nil)
          scheduler = ReverseLookup.scheduler_for(flags) or return super
          return FileWait.run("the name of an address") { super } if address.is_a?(Array)
          return super unless address.is_a?(String) || address.is_a?(Addrinfo)

          packed = address.is_a?(Addrinfo) ? address.to_sockaddr : address
          scheduler.__send__(:name_of, packed, flags.to_i) || super
        end

        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getaddrinfo
        def getaddrinfo(*arguments)
          scheduler = ReverseLookup.scheduler_for(nil)
          return super unless scheduler && ReverseLookup.wanted?(arguments[6], BasicSocket)

          list = super(*Array.new(6) { |i| arguments[i] }, false)
          list.each { |entry| ReverseLookup.name(scheduler, entry) }
        end
      end

      # For IPSocket.
      module ForIPSocket
        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-addr
        def addr(reverse_lookup = nil, *)
          scheduler = ReverseLookup.scheduler_for(nil)
          return super unless scheduler && ReverseLookup.wanted?(reverse_lookup, self)

          ReverseLookup.name(scheduler, super(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-peeraddr
        def peeraddr(reverse_lookup = nil, *)
          scheduler = ReverseLookup.scheduler_for(nil)
          return super unless scheduler && ReverseLookup.wanted?(reverse_lookup, self)

          ReverseLookup.name(scheduler, super(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-recvfrom
        def recvfrom(*)
          return super if do_not_reverse_lookup || !ReverseLookup.scheduler_for(nil)

          # (One system call receives, and the same method asks for the name of the sender: it goes elsewhere whole.)
          wait_readable(timeout) or raise IO::TimeoutError, "Blocking operation timed out!"
          FileWait.run("the name of an address", lasting: true) { super }
        end
      end

      class << self
        # @param flags [Integer, nil] of getnameinfo
        # @return [Scheduler, nil] that can wait for the name; nil: Ruby itself does it, or no resolver is needed
        def scheduler_for(flags)
          scheduler = Fiber.current_scheduler
          return unless scheduler.is_a?(Scheduler)

          scheduler if flags.nil? || (flags.is_a?(Integer) && flags.nobits?(Socket::NI_NUMERICHOST))
        end

        # @param reverse_lookup [Object] as given
        # @param default [BasicSocket, Class] whose setting counts if it is nil
        # @return [Boolean]
        def wanted?(reverse_lookup, default)
          return !default.do_not_reverse_lookup if reverse_lookup.nil?

          [true, :hostname].include?(reverse_lookup)
        end

        # Puts the name of the host into what Ruby says of an address: family, port, host, numeric host. Where there is
        # no name, its place is the number's.
        #
        # @return [Array]
        def name(scheduler, entry)
          sockaddr = Socket.pack_sockaddr_in(entry[1], entry[3])
          found = begin
            scheduler.__send__(:name_of, sockaddr, 0)
          rescue SocketError, SystemCallError
            nil
          end
          entry[2] = found.first if found
          entry
        end
      end
    end
  end
end

Addrinfo.prepend(Heddle::CoreExt::ReverseLookup::ForAddrinfo)
Socket.singleton_class.prepend(Heddle::CoreExt::ReverseLookup::ForSocket)
IPSocket.prepend(Heddle::CoreExt::ReverseLookup::ForIPSocket)
