# frozen_string_literal: true

module Heddle
  module CoreExt
    # Finds the names of addresses. Ruby asks the system for them in a thread of its own, and every fiber has to wait
    # for it. Here one of the workers for names asks (names_of, in name_lookup.c), and only the fiber that needs the
    # name waits.
    module NameLookup
      # For Addrinfo.
      module ForAddrinfo
        # @see https://docs.ruby-lang.org/en/master/Addrinfo.html#method-i-getnameinfo
        def getnameinfo(flags = nil)
          return __heddle_named_getnameinfo(*flags) unless NameLookup.asks?(flags) && ip?

          wanted = flags.to_i | (socktype == Socket::SOCK_DGRAM ? Socket::NI_DGRAM : 0)
          NameLookup.names_of(to_sockaddr, wanted) || __heddle_named_getnameinfo(*flags)
        end
      end

      # For Socket.
      module ForSocket
        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getnameinfo
        def getnameinfo(address, flags = nil)
          packed = address.is_a?(Addrinfo) ? address.to_sockaddr : address if NameLookup.asks?(flags)
          case packed
          when Array then NameLookup.by_thread(packed) { __heddle_named_getnameinfo(address, *flags) }
          when String then NameLookup.names_of(packed, flags.to_i) || __heddle_named_getnameinfo(address, *flags)
          else __heddle_named_getnameinfo(address, *flags)
          end
        end

        # @see https://docs.ruby-lang.org/en/master/Socket.html#method-c-getaddrinfo
        def getaddrinfo(*arguments)
          return __heddle_named_getaddrinfo(*arguments) unless NameLookup.wanted?(arguments[6], BasicSocket)

          list = __heddle_named_getaddrinfo(*Array.new(6) { |i| arguments[i] }, false)
          list.each { |entry| NameLookup.with_name(entry) }
        end
      end

      # For IPSocket.
      module ForIPSocket
        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-addr
        def addr(*arguments)
          return __heddle_named_addr(*arguments) unless NameLookup.wanted?(arguments.first, self)

          NameLookup.with_name(__heddle_named_addr(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-peeraddr
        def peeraddr(*arguments)
          return __heddle_named_peeraddr(*arguments) unless NameLookup.wanted?(arguments.first, self)

          NameLookup.with_name(__heddle_named_peeraddr(false))
        end

        # @see https://docs.ruby-lang.org/en/master/IPSocket.html#method-i-recvfrom
        def recvfrom(*arguments)
          return __heddle_named_recvfrom(*arguments) unless NameLookup.wanted?(nil, self)

          # One system call receives, and the same method asks for the name of the sender, so a worker runs the whole
          # method.
          wait_readable(timeout) or raise IO::TimeoutError, "Blocking operation timed out!"
          NameLookup.by_thread(arguments, lasting: true) { __heddle_named_recvfrom(*arguments) }
        end
      end

      class << self
        # @param flags [Integer, nil] of getnameinfo
        # @return [Boolean] does Heddle have to ask for a name?
        def asks?(flags)
          Scheduler.current && (flags.nil? || (flags.is_a?(Integer) && flags.nobits?(Socket::NI_NUMERICHOST)))
        end

        # @param reverse_lookup [Object] the argument of the program
        # @param default [BasicSocket, Class] whose setting counts if it is nil
        # @return [Boolean] does Heddle have to ask for a name?
        def wanted?(reverse_lookup, default)
          return false unless Scheduler.current

          reverse_lookup.nil? ? !default.do_not_reverse_lookup : [true, :hostname].include?(reverse_lookup)
        end

        # Runs the block, which asks for a name by itself, on a thread of the pool; inline where Ruby would have to
        # convert the arguments first (by a method of the program).
        def by_thread(arguments, lasting: false, &)
          plain = arguments.all? { |one| one.nil? || one.is_a?(String) || one.is_a?(Integer) }
          plain ? PoolThread.run("the name of an address", lasting:, &) : yield
        end

        # Puts the name of the host into Ruby's description of an address: family, port, host, numeric host. If the host
        # has no name, the number takes its place.
        #
        # @return [Array]
        def with_name(entry)
          name, = names_of(Socket.pack_sockaddr_in(entry[1], entry[3]), 0)
          entry[2] = name if name
          entry
        rescue SocketError, SystemCallError
          entry
        end
      end
    end
  end
end
