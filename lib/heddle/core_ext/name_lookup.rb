# frozen_string_literal: true

require_relative "../pool_thread"

module Heddle
  module CoreExt
    # The names of addresses. Ruby asks the system for them in a thread of its own, for which every fiber has to wait;
    # here one of the workers for names does it, and only the fiber that wants to know waits.
    module NameLookup
      # For Addrinfo.
      module ForAddrinfo
        # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-i-getnameinfo
        def getnameinfo(flags = nil)
          scheduler = NameLookup.scheduler_for(flags)
          return __heddle_named_getnameinfo(*flags) unless scheduler && ip?

          wanted = flags.to_i | (socktype == Socket::SOCK_DGRAM ? Socket::NI_DGRAM : 0)
          NameLookup.names_of(scheduler, to_sockaddr, wanted) || __heddle_named_getnameinfo(*flags)
        end
      end

      # For Socket.
      module ForSocket
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getnameinfo
        def getnameinfo(address, flags = nil)
          scheduler = NameLookup.scheduler_for(flags)
          packed = address.is_a?(Addrinfo) ? address.to_sockaddr : address if scheduler
          case packed
          when Array then NameLookup.by_thread(packed) { __heddle_named_getnameinfo(address, *flags) }
          when String
            NameLookup.names_of(scheduler, packed, flags.to_i) || __heddle_named_getnameinfo(address, *flags)
          else __heddle_named_getnameinfo(address, *flags)
          end
        end

        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getaddrinfo
        def getaddrinfo(*arguments)
          scheduler = NameLookup.scheduler_for(nil)
          unless scheduler && NameLookup.wanted?(arguments[6], BasicSocket)
            return __heddle_named_getaddrinfo(*arguments)
          end

          list = __heddle_named_getaddrinfo(*Array.new(6) { |i| arguments[i] }, false)
          list.each { |entry| NameLookup.name(scheduler, entry) }
        end
      end

      # For IPSocket.
      module ForIPSocket
        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-addr
        def addr(*arguments)
          scheduler = NameLookup.scheduler_for(nil)
          return __heddle_named_addr(*arguments) unless scheduler && NameLookup.wanted?(arguments.first, self)

          NameLookup.name(scheduler, __heddle_named_addr(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-peeraddr
        def peeraddr(*arguments)
          scheduler = NameLookup.scheduler_for(nil)
          return __heddle_named_peeraddr(*arguments) unless scheduler && NameLookup.wanted?(arguments.first, self)

          NameLookup.name(scheduler, __heddle_named_peeraddr(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-recvfrom
        def recvfrom(*arguments)
          return __heddle_named_recvfrom(*arguments) if do_not_reverse_lookup || !NameLookup.scheduler_for(nil)

          # (One system call receives, and the same method asks for the name of the sender: it goes elsewhere whole.)
          wait_readable(timeout) or raise IO::TimeoutError, "Blocking operation timed out!"
          NameLookup.by_thread(arguments, lasting: true) { __heddle_named_recvfrom(*arguments) }
        end
      end

      class << self
        # @param flags [Integer, nil] of getnameinfo
        # @return [Scheduler, nil] that can wait for the name; nil: Ruby itself does it, or no resolver is needed
        def scheduler_for(flags)
          Scheduler.current if flags.nil? || (flags.is_a?(Integer) && flags.nobits?(Socket::NI_NUMERICHOST))
        end

        # Runs the block, which asks for a name by itself, on a thread of the pool; inline where Ruby would have to
        # convert the arguments first (by a method of the program's).
        def by_thread(arguments, lasting: false, &)
          plain = arguments.all? { |one| one.nil? || one.is_a?(String) || one.is_a?(Integer) }
          plain ? PoolThread.run("the name of an address", lasting:, &) : yield
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
            NameLookup.names_of(scheduler, sockaddr, 0)
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
