# frozen_string_literal: true

require "rbconfig"
require_relative "server"

module TestSupport
  module Servers
    # The broker that librdkafka has for tests, in a process of its own. It finds a port by itself.
    class Kafka < Server
      PROGRAM = RbConfig.ruby
      SCRIPT = File.join(__dir__, "kafka_process.rb")

      def kill
        Process.kill(:KILL, @pid)
        Process.wait(@pid)
        @pid = nil
      end

      private

      def command = [PROGRAM, "-W0", SCRIPT]

      # The gems of this Ruby may be for this user alone.
      def other_user = nil

      # It has nothing to save.
      def end_signal = :KILL

      def ready? = (@port = log[/^port (\d+)$/, 1]&.to_i)
    end
  end
end
