# frozen_string_literal: true

# bin/test: takes 9 s, 0.3 of a core

require_relative "../../test_helper"
require "net/http"
require "support/clients/http_matrix"

# open-uri, which makes a connection for each call. The client is what it is given.
http_contracts "OpenUri", "open-uri", own: true do
  def name_in_table = "open-uri"
  def timeout_errors = [Net::ReadTimeout]
  def errors_of_a_server_that_stands_still = [Net::ReadTimeout, Net::OpenTimeout]
  def close_client(_) = nil
  def connects_for_each_question? = true
  def ask(client, number, seconds) = Integer(URI.parse(url(number, seconds)).open(**client, &:read))

  def open_client(timeout:)
    { read_timeout: timeout, open_timeout: timeout, **(tls? ? { ssl_ca_cert: server.certificate_file } : {}) }
  end

  # A long answer goes to a file.
  def test_a_long_answer
    skip("the same") if tls?
    reactor do
      lengths, = all_at_once(5) { |number| URI.parse(url("x" * (2000 + number), 0)).open(&:read).size }

      assert_equal([*2000..2004], lengths)
      progress = []
      assert_others_run do
        URI.parse("#{base}/parts?seconds=0.1").open(progress_proc: ->(size) { progress << size }) do |file|
          assert_equal("one\ntwo\nthree\n", file.read)
        end
      end

      assert_operator(progress.size, :>=, 3)
    end
  end
end
