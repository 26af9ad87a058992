# frozen_string_literal: true

require "support/clients/client_matrix"
require "support/certificate"
require "support/servers/nginx"

module TestSupport
  # The matrix of questions for clients that speak HTTP, asked of a real nginx: in the clear, and with TLS.
  #
  #   http_contracts "Faraday", "faraday" do
  #     def name_in_table = "Faraday"
  #     ...                           # and what ClientMatrix asks for
  #   end
  module HttpMatrix
    include ClientMatrix

    # In seconds. The first request, to connect, has the same limit.
    def shortest_timeout = 1

    def title = "#{name_in_table}#{", HTTPS" if tls?}"

    # @return [Integer]
    def port = tls? ? server.tls_port : server.port

    # @return [String]
    def base = "#{tls? ? "https" : "http"}://#{host}:#{port}"

    # The path of an answer that takes this number of seconds, and has this number.
    def path(number, seconds) = "/answer?number=#{number}&seconds=#{seconds}"

    # @return [String]
    def url(number, seconds) = base + path(number, seconds)

    # What trusts the server. One for all: to read the system's certificates for each connection takes 10 ms or more.
    def cert_store = Certificate.client_context.cert_store
  end
end

# See TestSupport::HttpMatrix.
def http_contracts(title, *client, plain: true, **options, &body)
  [*(false if plain), true].each do |tls|
    contract "#{title}#{"Tls" if tls}Matrix" do
      extend TestSupport::Clients

      include TestSupport::HttpMatrix

      client(*client, **options, server: TestSupport::Servers::Nginx)
      define_method(:tls?) { tls }
      class_eval(&body)
    end
  end
end
