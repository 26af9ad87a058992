# frozen_string_literal: true

require_relative "openssl_errors"

module Heddle
  module CoreExt
    # The reads and writes of an OpenSSL::SSL::SSLSocket count against the turn of their task. The methods are in
    # turn.c.
    module SSLTurn
      # @return [void] does nothing while OpenSSL has not defined them yet, or when it was called before
      def self.put_in_place
        return unless defined?(::OpenSSL::SSL::SSLSocket)

        socket = ::OpenSSL::SSL::SSLSocket
        names = Methods.instance_methods(false)
        there = names.all? { |name| socket.method_defined?(name, false) || socket.private_method_defined?(name, false) }
        return if !there || socket.private_method_defined?(:__heddle_sysread)

        CoreExt.replace(Patches[:ssl_turn], socket, Methods)
      end

      OpenSSLErrors.loaded? ? put_in_place : OpenSSLErrors.await(Patches[:ssl_turn])
    end
  end
end
