# frozen_string_literal: true

require_relative "openssl_errors"

module Heddle
  module CoreExt
    # What an OpenSSL::SSL::SSLSocket's *_nonblock methods raise.
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
