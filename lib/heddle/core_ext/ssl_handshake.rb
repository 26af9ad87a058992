# frozen_string_literal: true

require_relative "openssl_errors"

module Heddle
  module CoreExt
    # Closes the connection of a TLS handshake that a cancel or a timeout has ended. Many clients close a connection for
    # a StandardError only, and the socket would stay open until the next garbage collection.
    #
    # The handshakes that a task has begun are in a fiber-local list until they end. A client that waits by itself calls
    # connect_nonblock again and again, and the cancel comes in between. So the task closes the sockets in its list when
    # an error has ended it.
    module SSLHandshake
      OPEN = :__heddle_handshakes
      private_constant :OPEN

      # The methods of OpenSSL::SSL::SSLSocket that are replaced.
      module Methods
        # @see https://docs.ruby-lang.org/en/master/OpenSSL/SSL/SSLSocket.html#method-i-connect
        def connect = SSLHandshake.watch(self) { __heddle_connect }

        # @see https://docs.ruby-lang.org/en/master/OpenSSL/SSL/SSLSocket.html#method-i-connect_nonblock
        def connect_nonblock(...) = SSLHandshake.watch(self) { __heddle_connect_nonblock(...) }
      end

      class << self
        # @return [void] does nothing while OpenSSL has not defined them yet, or when it was called before
        def put_in_place
          return unless defined?(::OpenSSL::SSL::SSLSocket)

          socket = ::OpenSSL::SSL::SSLSocket
          there = Methods.instance_methods(false).all? { |name| socket.method_defined?(name, false) }
          return if !there || socket.private_method_defined?(:__heddle_connect)

          CoreExt.replace(Patches[:ssl_handshake], socket, Methods)
        end

        # Keeps the socket in the list while its handshake is under way.
        #
        # @param socket [OpenSSL::SSL::SSLSocket]
        # @yieldreturn [Object] what OpenSSL returns
        # @return [Object] the same
        def watch(socket)
          return yield unless Scheduler.current

          open = (Thread.current[OPEN] ||= [])
          open << socket unless open.include?(socket)
          result = yield
          open.delete(socket) unless result.is_a?(Symbol) # :wait_readable or :wait_writable
          result
        rescue StandardError => e
          open&.delete(socket) unless e.is_a?(IO::WaitReadable) || e.is_a?(IO::WaitWritable)
          raise
        end

        # Called when an error has ended a task, in its fiber.
        # @return [void]
        def close_open
          open = Thread.current[OPEN] or return
          Thread.current[OPEN] = nil
          open.each { |socket| socket.to_io.close } # without a farewell, for which it would wait
        rescue IOError, SystemCallError
          nil
        end
      end

      OpenSSLErrors.loaded? ? put_in_place : OpenSSLErrors.await(Patches[:ssl_handshake])
    end
  end
end
