# frozen_string_literal: true

require "socket"
require "support/puma"

module TestSupport
  # The same in Unicorn, with one process that works.
  class Unicorn < Puma
    def initialize(command, folder, environment:) # rubocop:disable Lint/MissingSuper -- Puma's starts Puma
      free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      start(command, "unicorn", ["-l", "127.0.0.1:#{free_port}", "config.ru"], folder, environment)
    end

    private

    def listening = /listening on addr=127\.0\.0\.1:(\d+)/
  end
end
