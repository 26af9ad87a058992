# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/server/address"

# What `--bind` takes, and what it refuses because it may mean something else.
class ServerAddressTest < HeddleTest
  def address(url) = Heddle::Server::Address.new(url)

  def test_addresses
    { "tcp://127.0.0.1:80" => "127.0.0.1:80", "tcp://127.0.0.1" => "127.0.0.1:9292",
      "tcp://[::1]:8080" => "[::1]:8080", "tcp://:8080" => "0.0.0.0:8080", "TCP://127.0.0.1:1" => "127.0.0.1:1",
      "unix:///run/app.sock" => "/run/app.sock", "unix:/run/app.sock?mode=0600" => "/run/app.sock" }
      .each do |url, shown|
      assert_equal(shown, address(url).addrinfo.inspect_sockaddr, url)
    end
    assert_equal("\0app", address("unix:@app").addrinfo.unix_path)
    assert_equal("\0app", address("unix://@app").addrinfo.unix_path)
  end

  def test_the_mode_of_a_socket
    assert_equal([0o666, 0o600, 0o660], ["", "?mode=600", "?mode=0660"].map { |mode| address("unix:/a#{mode}").mode })
  end

  def test_what_is_refused
    ["unix://tmp/app.sock", "unix:tmp/app.sock", "unix:", "unix:@", "unix:/a?mode=rw", "unix:/a?mode=0999",
     "unix:/a?mod=0600", "unix:/a#b", "unix:@a?mode=0600", "unix:/#{"a" * 120}", "tcp://8080", "tcp://127.1:80",
     "tcp://0x7f000001:80", "tcp://127.0.0.1:80/", "tcp://127.0.0.1:80/app", "tcp://user@127.0.0.1:80",
     "tcp://127.0.0.1:70000", "tcp://127.0.0.1:80?backlog=5", "tcp://127.0.0.1:8o", "tcp:127.0.0.1:80", "tcp://a b:80",
     "tcp://name.invalid:80", "http://127.0.0.1:80", "127.0.0.1:80", "9292", "", "ssl://127.0.0.1:1",
     "ssl://127.0.0.1:1?cert=a&cert=b", "ssl://127.0.0.1:1?cert=#{__FILE__}&key=#{__FILE__}&verify=peer"].each do |url|
      error = assert_raises(ArgumentError, url) { address(url) }

      assert_match(/\Abind: /, error.message)
    end
  end
end
