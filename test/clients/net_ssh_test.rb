# frozen_string_literal: true

# bin/test: takes 10 s, 0.6 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/sshd"

# net-ssh, with OpenSSH's server.
contract "NetSsh" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "net-ssh", file: "net/ssh", server: TestSupport::Servers::Sshd

  def title = "net-ssh"
  def close_client(client) = client.transport.close
  def open_client(**) = connect

  # It has no limit of its own for an answer.
  def timeout_errors = []

  def ask(client, number, seconds) = Integer(client.exec!("sleep #{seconds}; echo #{number}"))

  def connect(port = server.port, **)
    Net::SSH.start("127.0.0.1", server.user, port: port, keys: [server.key], keys_only: true, config: false,
                                             user_known_hosts_file: File::NULL, verify_host_key: :never,
                                             non_interactive: true, use_agent: false, **)
  end

  def test_channels_of_one_connection
    reactor do
      client = connect
      answers = []
      assert_others_run do
        10.times do |number|
          client.open_channel do |channel|
            channel.exec("sleep 0.2; echo #{number}") { channel.on_data { |_, text| answers << Integer(text) } }
          end
        end
        client.loop
      end

      assert_equal([*0...10], answers.sort)
    ensure
      client&.close
    end
  end

  # More than the window of a channel holds, there and back.
  def test_much_data
    reactor do
      client = connect
      text = "x" * 5_000_000
      got = 0
      client.open_channel do |channel|
        channel.exec("cat") do
          channel.on_data { |_, part| got += part.size }
          channel.send_data(text)
          channel.eof!
        end
      end
      assert_others_run { client.loop }

      assert_equal(text.size, got)
    ensure
      client&.close
    end
  end

  def test_timeout_of_the_connect
    reactor do
      silent = silent_port
      assert_times_out(0.2, Net::SSH::ConnectionTimeout) { connect(silent, timeout: 0.2) }
      mute = mute_port
      assert_times_out(0.2, Net::SSH::ConnectionTimeout) { connect(mute, timeout: 0.2) }
    ensure
      close_forgotten(Socket)
      close_forgotten(TCPSocket)
    end
  end
end
