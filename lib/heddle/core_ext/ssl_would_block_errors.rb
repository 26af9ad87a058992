# frozen_string_literal: true

require_relative "../replace"

module Heddle
  module CoreExt
    # What an OpenSSL::SSL::SSLSocket's *_nonblock methods raise. OpenSSL is often loaded later than Heddle: then its
    # errors are seen when they are defined.
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

      def inherited(error) # rubocop:disable Lint/MissingSuper -- it is what this one calls
        __heddle_inherited(error)
        SSLWouldBlockErrors.cheapen(error)
      end

      if !Object.autoload?(:OpenSSL) && defined?(OpenSSL::SSL::SSLErrorWaitWritable)
        MESSAGES.each_key { |name| cheapen(Object.const_get(name)) }
      else
        CoreExt.replace(Patches[:ssl_would_block_errors], StandardError.singleton_class, self)
      end
    end
  end
end
