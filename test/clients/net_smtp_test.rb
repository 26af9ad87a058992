# frozen_string_literal: true

# bin/test: takes 8 s, 0.4 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/smtp_server"

# net-smtp, with a small server.
contract "NetSmtp" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix
  include TestSupport::ClientMatrix::WrongAfterACancel

  client "net-smtp", file: "net/smtp"

  def setup
    super
    @server = keep(TestSupport::SmtpServer.new)
  end

  def title = "net-smtp"
  def timeout_errors = [Net::ReadTimeout]
  def close_client(client) = client.finish

  # After an error of any kind it sends nothing until #finish, and says that all is well.
  def what_is_wrong = "sends none of the next mails, and does not say so"
  def mend(client) = client.finish.then { client.start(user: "me", secret: "secret", authtype: :plain) }

  def open_client(timeout:, starttls: false)
    context = starttls ? TestSupport::Certificate.client_context : nil
    client = Net::SMTP.new(host, server.port, starttls: starttls && :always, tls_verify: true)
    client.enable_starttls(context) if context
    client.read_timeout = timeout
    client.start(user: "me", secret: "secret", authtype: :plain)
  end

  def ask(client, number, seconds)
    answer = client.send_message("Subject: #{number}\r\n\r\nHello.\r\n.\r\n", "me@localhost", "#{seconds}@localhost")
    answer.string[/taken: (\d+)/, 1].to_i
  end

  def test_starttls
    reactor do
      assert_overlaps(20) do
        values, = all_at_once(20) do |number|
          client = open_client(timeout: 60, starttls: true)
          ask(client, number, 0.2)
        ensure
          client&.finish
        end

        assert_equal([*0...20], values)
      end
    end
  end

  # Much text goes out while the server reads it.
  def test_a_long_mail
    reactor do
      client = open_client(timeout: 10)
      answer = nil
      assert_others_run do
        answer = client.send_message("Subject: 5\r\n\r\n#{"x" * 70}\r\n" * 50_000, "me@localhost", "0.1@localhost")
      end

      assert_match(/taken: 5/, answer.string)
    ensure
      client&.finish
    end
  end

  def test_open_timeout
    reactor do
      port = silent_port
      client = Net::SMTP.new(host, port)
      client.open_timeout = 0.2
      assert_times_out(0.2, Net::OpenTimeout) { client.start }
    end
  end
end
