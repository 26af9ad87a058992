# frozen_string_literal: true

# bin/test: takes 10 s, 0.3 of a core

require_relative "../../test_helper"
require "support/clients/http_matrix"
require "support/io/shared_io"

# net-http-persistent, which hands each task a connection of its own.
http_contracts "NetHttpPersistent", "net-http-persistent", file: "net/http/persistent" do
  include TestSupport::SharedIO

  def name_in_table = "net-http-persistent"
  def timeout_errors = [Net::ReadTimeout]
  def errors_of_a_server_that_stands_still = [Net::ReadTimeout, Net::OpenTimeout]
  def close_client(client) = client.shutdown
  def ask(client, number, seconds) = Integer(client.request(url(number, seconds)).body)

  def open_client(timeout:)
    Net::HTTP::Persistent.new(pool_size: 50).tap do |one|
      one.read_timeout = one.open_timeout = timeout
      one.cert_store = cert_store
      ask(one, 0, 0)
    end
  end

  def test_tasks_share_one
    heddle_only("it is about tasks")
    shared = Heddle.run { open_client(timeout: 10) }
    assert_right_and_silent { |number| ask(shared, number, 0.05) }
    # The connections are there already.
    assert_right_and_silent { |number| ask(shared, number, 0.05) }
  ensure
    shared&.shutdown
  end
end
