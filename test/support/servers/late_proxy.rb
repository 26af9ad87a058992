# frozen_string_literal: true

require "rbconfig"
require_relative "server"

module TestSupport
  module Servers
    # Makes a server late that has no slow commands: a process that hands on the bytes of clients and server. When a
    # client sends "late=0.2" among other bytes, it hands them on after 0.2 seconds.
    class LateProxy < Server
      PROGRAM = RbConfig.ruby
      SCRIPT = File.join(__dir__, "late_proxy_process.rb")

      # @param server [Server] one that runs
      # @return [LateProxy] the one of this process before it
      def self.before(server) = (@before ||= {})[server.port] ||= new(server.port).tap(&:start)

      def initialize(target)
        super()
        @target = target
      end

      # While the block runs, the process is dead. Then it is there again, at the same port.
      def killed
        Process.kill(:KILL, @pid)
        Process.wait(@pid)
        @pid = nil
        yield
      ensure
        launch or raise Missing, "#{SCRIPT} does not start again:\n#{log}"
      end

      private

      def free_port = port || super

      # Another user may not be allowed to read this Ruby's files.
      def other_user = nil

      def command = [self.class.program, "--disable-gems", SCRIPT, port.to_s, @target.to_s]
    end
  end
end
