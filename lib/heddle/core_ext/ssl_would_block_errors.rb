# frozen_string_literal: true

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

      # @private
      def self.cheapen(error)
        message = MESSAGES[error.name]
        CoreExt.cheapen(error, [message.b]) if message
      end

      # @private
      def inherited(error) # rubocop:disable Lint/MissingSuper -- it is what this one calls
        __heddle_inherited(error)
        SSLWouldBlockErrors.cheapen(error)
      end
    end
  end
end

if !Object.autoload?(:OpenSSL) && defined?(OpenSSL::SSL::SSLErrorWaitWritable)
  Heddle::CoreExt::SSLWouldBlockErrors.cheapen(OpenSSL::SSL::SSLErrorWaitReadable)
  Heddle::CoreExt::SSLWouldBlockErrors.cheapen(OpenSSL::SSL::SSLErrorWaitWritable)
else
  Heddle::CoreExt.replace_now(StandardError.singleton_class, Heddle::CoreExt::SSLWouldBlockErrors)
end
