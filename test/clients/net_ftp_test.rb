# frozen_string_literal: true

# bin/test: takes 10 s, 0.4 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/vsftpd"

# net-ftp, with vsftpd.
contract "NetFtp" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "net-ftp", file: "net/ftp", server: TestSupport::Servers::Vsftpd

  def title = "net-ftp"
  def close_client(client) = client.close
  def timeout_errors = [Net::ReadTimeout]

  def open_client(timeout:)
    Net::FTP.new(host, port: server.port, username: "anonymous", read_timeout: timeout, open_timeout: timeout)
  end

  # A file whose transfer takes this number of seconds. It begins with the number.
  def ask(client, number, seconds)
    name = "#{number} #{seconds}"
    write(name, number.to_s.ljust((seconds * TestSupport::Servers::Vsftpd::RATE).to_i + 10))
    text = +""
    client.retrbinary("RETR files/#{name}", 4096) { |part| text << part }
    Integer(text[0, 10].rstrip)
  end

  def write(name, text)
    path = File.join(server.folder, "root/files", name)
    File.write(path, text) unless File.exist?(path)
  end

  # A file comes slowly, but it comes: it is the greeting that does not.
  def test_matrix_timeout
    reactor do
      port = mute_port
      assert_times_out(0.2, Net::ReadTimeout) { Net::FTP.new(host, port: port, read_timeout: 0.2) }
      note(timeout: "Net::ReadTimeout")
    end
  ensure
    close_forgotten(Socket) # net-ftp leaves it open
  end

  def test_put_get_and_list
    reactor do
      values, = all_at_once(10) do |number|
        client = open_client(timeout: 10)
        client.putbinaryfile(put_file(number), "files/put #{number}")
        [client.getbinaryfile("files/put #{number}", nil), client.nlst("files").include?("files/put #{number}")]
      ensure
        client&.close
      end

      assert_equal(Array.new(10) { |number| [number.to_s * 1000, true] }, values)
    end
  end

  def put_file(number)
    @folder ||= tempdir
    File.join(@folder, number.to_s).tap { |path| File.write(path, number.to_s * 1000) }
  end

  def test_open_timeout
    reactor do
      port = silent_port
      assert_times_out(0.2, Net::OpenTimeout) { Net::FTP.new(host, port: port, open_timeout: 0.2) }
    end
  end
end
