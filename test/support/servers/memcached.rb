# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # memcached, which keeps nothing on disk.
    class Memcached < Server
      PROGRAM = "memcached"
      PACKAGE = "memcached"

      # @return [String]
      def version = `#{self.class.program} --version`[/[\d.]+/]

      private

      # With one thread no connection is luckier than another.
      def command = [self.class.program, "-l", "127.0.0.1", "-p", port.to_s, "-U", "0", "-m", "16", "-t", "1"]
    end
  end
end
