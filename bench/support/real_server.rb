# frozen_string_literal: true

module Bench
  # The real servers and programs that rows need, Debian's; the servers as the tests start them.
  module RealServer
    class << self
      # @param file [String] its file in test/support/servers/
      # @param install [Boolean] whether it may be installed
      # @return [TestSupport::Servers::Server] one for this run
      # @raise [Missing]
      def start(file, install:)
        require_relative "../../test/support/servers/#{file}"
        server = TestSupport::Servers.const_get(file.capitalize)
        install(server::PACKAGE) if install && server.missing
        server.start
      rescue TestSupport::Servers::Missing => e
        raise Missing, e.message
      end

      # @return [String] its path
      # @raise [Missing]
      def program(name, install:)
        install(name) if install && !which(name)
        which(name) || raise(Missing, "#{name} is not installed (Debian's package #{name})")
      end

      private

      def which(name)
        ENV.fetch("PATH", "").split(":").map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
      end

      def install(package)
        require_relative "../../tools/console"
        require_relative "../../tools/setup/apt"
        Tools::Apt.new(Tools::Console.new).install([package])
      rescue Tools::Problem => e
        raise Missing, e.report.join("\n")
      end
    end
  end
end
