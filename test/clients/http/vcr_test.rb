# frozen_string_literal: true

# bin/test: takes 3 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/http_server"
require "net/http"

# VCR, which records what a server answers, and plays it.
contract "Vcr" do
  extend TestSupport::Clients

  client "vcr"
  missing = TestSupport::Clients.load("webmock")

  define_method(:setup) do
    super()
    skip(missing) if missing
    WebMock.enable!
    @folder = tempdir
    VCR.configure do |config|
      config.cassette_library_dir = @folder
      config.hook_into(:webmock)
    end
    @server = keep(TestSupport::HttpServer.new)
  end

  def teardown
    WebMock.reset!
    WebMock.disable!
    super
  end

  def ask(number) = Net::HTTP.post(URI("http://127.0.0.1:#{@server.port}/#{number}"), "x" * number).body

  def ask_all
    assert_equal(Array.new(20) { |number| "POST 1 #{number}" }, all_at_once(20) { |number| ask(number) }.first)
  end

  # Tasks of one cassette record and play side by side.
  def test_record_and_play
    reactor { VCR.use_cassette("tape") { assert_overlaps(20, @server) { ask_all } } }
    close_kept # the server
    reactor { VCR.use_cassette("tape") { ask_all } }

    assert_equal(20, File.read(File.join(@folder, "tape.yml")).scan("uri:").size)
  end
end
