# frozen_string_literal: true

require_relative "openssl_errors"

module Heddle
  module CoreExt
    # Replaces the exceptions that the *_nonblock methods of an OpenSSL::SSL::SSLSocket raise.
    module SSLWouldBlockErrors
      MESSAGES = {
        "OpenSSL::SSL::SSLErrorWaitReadable" => "read would block",
        "OpenSSL::SSL::SSLErrorWaitWritable" => "write would block"
      }.freeze
      private_constant :MESSAGES

      def self.cheapen(error)
        message = MESSAGES[error.name]
        CoreExt.cheapen(error, [message.b]) if message
      end

      if OpenSSLErrors.loaded?
        MESSAGES.each_key { |name| cheapen(Object.const_get(name)) }
      else
        OpenSSLErrors.await(Patches[:ssl_would_block_errors])
      end
    end
  end
end
