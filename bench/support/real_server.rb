# frozen_string_literal: true

module Bench
  # The real servers that rows need, Debian's, as the tests start them.
  module RealServer
    # @param file [String] its file in test/support/servers/
    # @param install [Boolean] whether it may be installed
    # @return [TestSupport::Servers::Server] one for this run
    def self.start(file, install:)
      require_relative "../../test/support/servers/#{file}"
      server = TestSupport::Servers.const_get(file.capitalize)
      install(server::PACKAGE) if install && server.missing
      server.start
    rescue TestSupport::Servers::Missing => e
      abort(e.message)
    end

    def self.install(package)
      require_relative "../../tools/console"
      require_relative "../../tools/apt"
      Tools::Apt.new(Tools::Console.new).install([package])
    rescue Tools::Problem => e
      abort(e.report.join("\n"))
    end
    private_class_method :install
  end
end
