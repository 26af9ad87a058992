# frozen_string_literal: true

require "openssl"

module TestSupport
  # A certificate for "localhost", made once per process.
  module Certificate
    class << self
      def server_context
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.key = key
          context.cert = certificate
        end
      end

      # A context that trusts the certificate.
      def client_context(verify: true)
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.cert_store = OpenSSL::X509::Store.new
          context.cert_store.add_cert(certificate) if verify
          context.verify_mode = OpenSSL::SSL::VERIFY_PEER
        end
      end

      def key
        @key ||= OpenSSL::PKey::EC.generate("prime256v1")
      end

      def certificate
        @certificate ||= build
      end

      private

      def build
        OpenSSL::X509::Certificate.new.tap do |one|
          one.version = 2
          one.serial = 1
          one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
          one.public_key = key
          one.not_before = Time.now - 3600
          one.not_after = Time.now + 86_400
          extend_certificate(one)
          one.sign(key, "SHA256")
        end
      end

      def extend_certificate(one)
        factory = OpenSSL::X509::ExtensionFactory.new(one, one)
        one.add_extension(factory.create_extension("basicConstraints", "CA:TRUE", true))
        one.add_extension(factory.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
      end
    end
  end
end
