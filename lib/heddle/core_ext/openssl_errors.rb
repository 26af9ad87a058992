# frozen_string_literal: true

require_relative "../internal/replace"

module Heddle
  module CoreExt
    # Changes OpenSSL as soon as it has defined its classes. OpenSSL is often loaded later than Heddle. The definition
    # of its error classes shows the moment.
    module OpenSSLErrors
      def inherited(error) # rubocop:disable Lint/MissingSuper -- it is what this one calls
        __heddle_inherited(error)
        SSLWouldBlockErrors.cheapen(error) if defined?(SSLWouldBlockErrors)
        return unless error.name&.start_with?("OpenSSL::")

        SSLTurn.put_in_place if SSLTurn.respond_to?(:put_in_place)
        SSLHandshake.put_in_place if defined?(SSLHandshake)
      end

      # @return [Boolean] is the whole of OpenSSL loaded?
      def self.loaded? = !Object.autoload?(:OpenSSL) && !!defined?(OpenSSL::SSL::SSLErrorWaitWritable)

      def self.await(patch)
        return if @awaited

        @awaited = true
        CoreExt.replace(patch, StandardError.singleton_class, self)
      end
    end
  end
end
