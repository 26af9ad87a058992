# frozen_string_literal: true

# bin/test: takes 10 s, 0.4 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/dovecot"

# net-imap, which reads with a thread of its own, and dovecot.
contract "NetImap" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "net-imap", file: "net/imap", server: TestSupport::Servers::Dovecot

  def title = "net-imap"
  def close_client(client) = client.disconnect
  def open_client(**) = connect

  # It has none for an answer.
  def timeout_errors = []

  def connect
    Net::IMAP.new("127.0.0.1", port: server.port, ssl: false, open_timeout: 10).tap do |client|
      client.login("me", "secret")
      client.select("INBOX")
    end
  end

  # The lines of a late answer are kept, and the next command of that kind finds them.
  def mend(client)
    client.noop
    client.clear_responses
  end

  # Waits for news for this time, then asks for the mailbox of that number.
  def ask(client, number, seconds)
    client.idle(seconds) { nil } if seconds.positive?
    Integer(client.list("", number.to_s).first.name)
  end

  def test_news
    reactor do
      listener = connect
      news = Thread::Queue.new
      waiting = go do
        listener.idle(20) do |one|
          if one.is_a?(Net::IMAP::UntaggedResponse) && one.name == "EXISTS"
            news << one.data
            listener.idle_done
          end
        end
      end
      sender = connect
      sleep(0.05)
      sender.append("INBOX", "Subject: hello\r\n\r\nYou have mail.\r\n")

      assert_operator(assert_others_run { others_have_run && news.pop }, :>=, 1)
      waiting.value
      last = listener.search(["ALL"]).last

      assert_equal("You have mail.\r\n", listener.fetch(last, "BODY[TEXT]").first.attr["BODY[TEXT]"])
    ensure
      [listener, sender].each { |one| one&.disconnect }
    end
  end

  # IMAP's lines have no number: so it is in plain Ruby, too.
  def test_a_late_answer
    reactor do
      client = connect
      waiting = nil
      server.paused do
        waiting = go { Timeout.timeout(0.1) { client.list("", "1") } }

        assert_kind_of(Timeout::Error, waiting.failure)
      end

      assert_equal(%w[1 2], client.list("", "2").map(&:name), "the guide need not warn any more")
      mend(client)

      assert_equal(%w[3], client.list("", "3").map(&:name))
    ensure
      client&.disconnect
    end
  end

  def test_open_timeout
    reactor do
      port = silent_port
      # net-imap knows whole seconds.
      assert_times_out(1, Net::OpenTimeout) { Net::IMAP.new("127.0.0.1", port: port, ssl: false, open_timeout: 1) }
    end
  end
end
