# frozen_string_literal: true

require "rbconfig"
require_relative "server"

module TestSupport
  module Servers
    # The service of grpc_process.rb, in a process of its own.
    class Grpc < Server
      PROGRAM = RbConfig.ruby
      SCRIPT = File.join(__dir__, "grpc_process.rb")

      private

      def command = [PROGRAM, SCRIPT, port.to_s]

      # The gems of this Ruby may be for this user alone.
      def other_user = nil

      # It has nothing to save.
      def end_signal = :KILL
    end
  end
end
