# frozen_string_literal: true

require "openssl"
require_relative "check"

module Heddle
  class Server
    # The certificate of a TLS address, which can be loaded anew while the server runs.
    #
    # @private
    class Certificate
      # @return [OpenSSL::SSL::SSLContext] for the next connection
      attr_reader :context

      # @param cert [String] a file in PEM form: the certificate, and the certificates between it and its authority
      # @param key [String] the file of its private key
      # @param protocols [Array<String>] the protocols that a client may choose from, the best first
      # @raise [ArgumentError] if the files cannot be used
      def initialize(cert, key, protocols)
        @cert = cert
        @key = key
        @protocols = protocols
        load
      end

      # Loads the files anew. If they cannot be used, the certificate stays as it is.
      #
      # @return [void]
      # @raise [ArgumentError]
      def load
        certificates = OpenSSL::X509::Certificate.load_file(@cert)
        key = OpenSSL::PKey.read(File.read(@key))
        @context = context_of(certificates, key)
      rescue OpenSSL::OpenSSLError, SystemCallError, ArgumentError => e # the key may not fit the certificate
        Check.refuse("bind: cert=#{@cert} and key=#{@key} cannot be used (#{e.message})")
      end

      private

      def context_of(certificates, key)
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.add_certificate(certificates.first, key, certificates.drop(1))
          context.min_version = OpenSSL::SSL::TLS1_2_VERSION
          context.alpn_select_cb = lambda do |offered|
            (@protocols & offered).first || raise(OpenSSL::SSL::SSLError, "the client speaks none of our protocols")
          end
          context.freeze
        end
      end
    end
  end
end
