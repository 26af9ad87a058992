# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # Redis, which keeps nothing on disk.
    class Redis < Server
      PROGRAM = "redis-server"
      PACKAGE = "redis-server"

      # @return [String]
      def version = `#{self.class.program} --version`[/v=([\d.]+)/, 1]

      # @return [String] the path of its UNIX socket
      def path = File.join(folder, "socket")

      private

      def command
        [self.class.program, "--bind", "127.0.0.1", "--port", port.to_s, "--unixsocket", path, "--save", "",
         "--appendonly", "no", "--dir", folder]
      end
    end
  end
end
