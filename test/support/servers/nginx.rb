# frozen_string_literal: true

require_relative "server"
require "support/certificate"

module TestSupport
  module Servers
    # nginx with the echo module. /answer?number=7&seconds=0.2 answers "7" after 0.2 seconds, /echo with the body that
    # it was sent, /parts?seconds=0.1 with three lines that come 0.1 seconds apart. It speaks HTTP on #port, and HTTPS
    # with HTTP/2 on #tls_port; a client that must trust its certificate is given #certificate_file.
    class Nginx < Server
      PROGRAM = "nginx"
      PACKAGE = "nginx-light"
      MODULES = "/usr/lib/nginx/modules"

      # @return [String, nil]
      def self.missing
        super || ("nginx has no echo module (Debian's package libnginx-mod-http-echo)" unless File.exist?(
          "#{MODULES}/ngx_http_echo_module.so"
        ))
      end

      attr_reader :tls_port

      def unread = Pause.unread(port, tls_port)

      # @return [String]
      def certificate_file = File.join(folder, "server.crt")

      private

      def command
        @tls_port = free_port
        write_file("nginx.conf", configuration)
        [self.class.program, "-p", folder, "-c", "nginx.conf", "-e", "error.log"]
      end

      def prepare
        make_folders("tmp")
        write_file("server.crt", Certificate.certificate.to_pem)
        write_file("server.key", Certificate.key.to_pem)
      end

      def configuration
        <<~TEXT
          load_module #{MODULES}/ngx_http_echo_module.so;
          daemon off;
          pid nginx.pid;
          master_process off;
          events { worker_connections 1000; }
          http {
            access_log off;
            #{%w[client_body proxy fastcgi uwsgi scgi].map { |name| "#{name}_temp_path tmp;" }.join(" ")}
            server {
              listen 127.0.0.1:#{port} backlog=1000;
              listen 127.0.0.1:#{tls_port} ssl http2 backlog=1000;
              ssl_certificate server.crt;
              ssl_certificate_key server.key;
              client_max_body_size 100m;
              client_body_buffer_size 100m;
              location /answer { echo_sleep $arg_seconds; echo -n $arg_number; }
              location /echo { echo_read_request_body; echo_request_body; }
              location /parts {
                echo one; echo_flush; echo_sleep $arg_seconds;
                echo two; echo_flush; echo_sleep $arg_seconds;
                echo three;
              }
            }
          }
        TEXT
      end
    end
  end
end
