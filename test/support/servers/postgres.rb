# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # PostgreSQL with a superuser "heddle" who needs no password.
    class Postgres < Server
      PROGRAM = "postgres"
      PACKAGE = "postgresql"
      FOLDERS = Dir.glob("/usr/lib/postgresql/*/bin").reverse.freeze

      # @return [String]
      def version = `#{self.class.program} --version`[/[\d.]+/]

      private

      def prepare
        run(self.class.program("initdb"), "-D", data, "-U", "heddle", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
      end

      def command
        [self.class.program, "-D", data, "-p", port.to_s, "-k", folder, "-c", "listen_addresses=127.0.0.1",
         "-c", "fsync=off", "-c", "max_connections=#{most_connections}", "-c", "shared_buffers=16MB"]
      end

      def most_connections = 120

      # It refuses the first connections.
      def ready? = File.exist?(log_file) && File.read(log_file).include?("ready to accept connections")

      def data = File.join(folder, "data")

      # At once, whoever is connected.
      def end_signal = :QUIT
    end
  end
end
