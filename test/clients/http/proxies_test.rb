# frozen_string_literal: true

# bin/test: takes 10 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/certificate"
require "support/servers/nginx"
require "support/servers/tinyproxy"

# Through a real proxy: HTTP as it is, HTTPS with CONNECT. Each takes an URI, the proxy's port and a file to trust; and
# a store that does: to read the system's certificates for each connection takes long.
{
  "net-http" => lambda do |uri, proxy, _, store|
    client = Net::HTTP.new(uri.host, uri.port, "127.0.0.1", proxy)
    client.use_ssl = uri.scheme == "https"
    client.cert_store = store
    client.get(uri.request_uri).body
  end,
  "faraday" => lambda do |uri, proxy, _, store|
    Faraday.new(uri, proxy: "http://127.0.0.1:#{proxy}", ssl: { cert_store: store }).get.body
  end,
  "excon" => lambda do |uri, proxy, ca_file, store|
    Excon.get(uri.to_s, proxy: "http://127.0.0.1:#{proxy}", ssl_ca_file: ca_file, ssl_cert_store: store).body
  end,
  "httpx" => lambda do |uri, proxy, ca_file, _|
    session = HTTPX.plugin(:proxy).with_proxy(uri: "http://127.0.0.1:#{proxy}").with(ssl: { ca_file: ca_file })
    session.get(uri.to_s).raise_for_status.body.to_s
  end,
  "http" => lambda do |uri, proxy, *|
    HTTP.via("127.0.0.1", proxy).get(uri, ssl_context: TestSupport::Certificate.client_context).to_s
  end
}.each do |gem, get|
  contract "#{gem.capitalize.delete("-")}Proxy" do
    extend TestSupport::Clients

    client gem, file: gem.sub("net-http", "net/http"), server: TestSupport::Servers::Nginx

    def before_setup
      @proxy = TestSupport::Servers::Tinyproxy.start unless TestSupport::Servers::Tinyproxy.missing || backend_missing
      super
    end

    def setup
      super
      skip(TestSupport::Servers::Tinyproxy.missing) unless @proxy
    end

    { http: :port, https: :tls_port }.each do |scheme, port|
      define_method("test_#{scheme}") do
        reactor do
          url = "#{scheme}://localhost:#{server.public_send(port)}/answer?seconds=0.3&number="
          store = TestSupport::Certificate.client_context.cert_store
          answer = ->(number) { get.call(URI("#{url}#{number}"), @proxy.port, server.certificate_file, store) }
          answer.call(0) # what is made once does not count
          assert_overlaps(20) do
            values, = all_at_once(20, &answer)

            assert_equal(Array.new(20, &:to_s), values)
          end
        end
      end
    end
  end
end
