# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # Redis, which is told to keep nothing on disk.
    class Redis < Server
      PROGRAM = "redis-server"
      PACKAGE = "redis-server"

      # @return [String]
      def version = `#{self.class.program} --version`[/v=([\d.]+)/, 1]

      private

      def command
        [self.class.program, "--bind", "127.0.0.1", "--port", port.to_s, "--save", "", "--appendonly", "no",
         "--dir", folder]
      end
    end
  end
end
