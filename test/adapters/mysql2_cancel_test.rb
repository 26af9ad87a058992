# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/mariadb"

# Cancels at any moment of a query of mysql2, with the adapter.
contract "Mysql2AdapterCancel" do
  extend TestSupport::Clients

  client "mysql2", server: TestSupport::Servers::Mariadb

  heddle_only "they are not cancelled"

  def setup
    super
    require "heddle/adapters/mysql2"
  end

  def connect
    keep(Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "heddle", database: "heddle"))
  end

  def ask(client, number)
    client.query("SELECT #{number} AS number FROM (SELECT SLEEP(0.001)) AS pause").first["number"]
  end

  # The client answers right, or says that its connection is gone. It is in use by nobody who has ended.
  def test_a_cancel_at_any_moment
    Heddle.run(backend: backend) do
      client = connect
      150.times do |number|
        task = Heddle.spawn { ask(client, -1) }
        task.wait(0.00002 * number)
        task.cancel.wait(20)
        begin
          assert_equal(number, ask(client, number))
        rescue Mysql2::Error => e
          refute_match(/in use by/, e.message)
          client.close
          client = connect
        end
      end
    end
  end
end
