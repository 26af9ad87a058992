# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # A proxy for HTTP, and with CONNECT for everything else.
    class Tinyproxy < Server
      PROGRAM = "tinyproxy"
      PACKAGE = "tinyproxy-bin"

      private

      def command
        config = write_file("tinyproxy.conf", <<~TEXT)
          Port #{port}
          Listen 127.0.0.1
          Timeout 60
          MaxClients 200
          LogLevel Warning
        TEXT
        [self.class.program, "-d", "-c", config]
      end
    end
  end
end
