# frozen_string_literal: true

# bin/test: takes 10 s, 0.6 of a core

require "stringio"

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/s3_server"
require "uri"

# aws-sdk-s3, whose clients have a pool of Net::HTTP connections that is the same for all of them.
contract "AwsS3" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "aws-sdk-s3"

  def setup
    super
    @server = keep(TestSupport::S3Server.new)
  end

  def teardown
    close_client(nil)
    close_forgotten(TCPSocket) # those of requests that were cancelled
    super
  end

  def title = "aws-sdk-s3"
  def open_client(timeout:) = s3(http_read_timeout: timeout).tap { |one| ask(one, 0, 0) }
  def close_client(_) = Seahorse::Client::NetHttp::ConnectionPool.pools.each(&:empty!)
  def timeout_errors = [Seahorse::Client::NetworkingError]

  def ask(client, number, seconds)
    Integer(client.get_object(bucket: "bucket", key: "late/#{seconds}/#{number}").body.read)
  end

  def s3(**)
    Aws::S3::Client.new(endpoint: "http://#{host}:#{server.port}", region: "here", force_path_style: true,
                        access_key_id: "me", secret_access_key: "secret", retry_limit: 0, **)
  end

  def test_put_and_get
    client = s3
    reactor do
      values, = all_at_once(50) do |number|
        client.put_object(bucket: "bucket", key: "object #{number}", body: StringIO.new("#{number} " * 10_000))
        client.get_object(bucket: "bucket", key: "object #{number}").body.read
      end

      assert_equal(Array.new(50) { |number| "#{number} " * 10_000 }, values)
    end
  end

  def test_an_object_comes_in_pieces
    client = s3
    reactor do
      client.put_object(bucket: "bucket", key: "long", body: "x" * 1_000_000)
      pieces = []
      client.get_object(bucket: "bucket", key: "long") { |piece| pieces << piece.size }

      assert_equal(1_000_000, pieces.sum)
      assert_operator(pieces.size, :>, 10)
    end
  end

  # The SDK sends the parts with threads of its own.
  def test_an_upload_in_parts
    path = File.join(tempdir, "long")
    text = Array.new(12) { |number| number.to_s(16) * 1_048_576 }.join
    File.write(path, text)
    client = s3
    reactor do
      manager = Aws::S3::TransferManager.new(client: client)
      assert_others_run do
        manager.upload_file(path, bucket: "bucket", key: "file", multipart_threshold: 5_242_880)
        manager.upload_stream(bucket: "bucket", key: "stream") do |to|
          to << text
        end
      end

      %w[file stream].each do |key|
        assert_equal(text, client.get_object(bucket: "bucket", key: key).body.read)
      end
      assert_equal(0, server.unfinished)
    end
  end

  def test_pages
    client = s3
    reactor do
      all_at_once(35) { |number| client.put_object(bucket: "bucket", key: format("page/%02d", number), body: "") }
      pages = client.list_objects_v2(bucket: "bucket", prefix: "page/").map { |page| page.contents.map(&:key) }

      assert_equal([10, 10, 10, 5], pages.map(&:size))
      assert_equal(Array.new(35) { |number| format("page/%02d", number) }, pages.flatten)
    end
  end
end
