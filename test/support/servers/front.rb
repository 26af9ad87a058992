# frozen_string_literal: true

require_relative "../certificate"
require_relative "server"

module TestSupport
  module Servers
    # A proxy in front of a server on 127.0.0.1. It tries each request once, so that nothing that is lost is hidden. It
    # speaks HTTP/1.1 on #port, HTTP/2 without TLS on #http2_port, and both with TLS on #tls_port.
    class Front < Server
      # @return [Integer]
      attr_reader :http2_port, :tls_port

      # @param upstream [Integer] the port of the server
      def initialize(upstream)
        super()
        @upstream = upstream
      end

      private

      def command
        @http2_port = free_port
        @tls_port = free_port
        write_file("proxy.pem", Certificate.certificate.to_pem + Certificate.key.to_pem)
        [self.class.program, *arguments(write_file("proxy.conf", configuration))]
      end
    end

    # Debian's HAProxy, which speaks HTTP/2 with the server.
    class HAProxyFront < Front
      PROGRAM = "haproxy"
      PACKAGE = "haproxy"

      private

      def arguments(file) = ["-db", "-f", file]

      def configuration
        <<~TEXT
          global
            maxconn 1000
          defaults
            mode http
            retries 0
            timeout connect 30s
            timeout client 60s
            timeout server 60s
          listen proxy
            bind 127.0.0.1:#{port}
            bind 127.0.0.1:#{http2_port} proto h2
            bind 127.0.0.1:#{tls_port} ssl crt proxy.pem alpn h2,http/1.1
            http-reuse always
            server upstream 127.0.0.1:#{@upstream} proto h2
        TEXT
      end
    end

    # Debian's nginx, which keeps its connections (HTTP/1.1) to the server.
    class NginxFront < Front
      PROGRAM = "nginx"
      PACKAGE = "nginx-light"

      private

      def arguments(file) = ["-p", folder, "-c", file, "-e", "error.log"]

      def prepare = make_folders("tmp")

      def configuration
        <<~TEXT
          daemon off;
          pid nginx.pid;
          master_process off;
          events { worker_connections 1000; }
          http {
            access_log off;
            #{%w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path tmp;" }.join(" ")}
            keepalive_requests 1000000;
            upstream heddle { server 127.0.0.1:#{@upstream} max_fails=0; keepalive 32; }
            server {
              listen 127.0.0.1:#{port};
              listen 127.0.0.1:#{http2_port} http2;
              listen 127.0.0.1:#{tls_port} ssl http2;
              ssl_certificate proxy.pem;
              ssl_certificate_key proxy.pem;
              location / {
                proxy_pass http://heddle;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_next_upstream off;
              }
            }
          }
        TEXT
      end
    end
  end
end
