# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"
require "support/site"
require "zlib"

contract "WithThreadsExample" do
  include TestSupport::Examples

  def setup
    super
    @site = TestSupport::Site.new { |request| request.path == "/gone" ? [404, ""] : request.path * 100 }
  end

  def teardown
    @site.close
    super
  end

  def test_gets_the_pages_for_the_threads
    paths = (1..40).map { |number| "/page/#{number}" }
    program = run_example("with_threads", *paths.map { |path| @site.url(path) }, @site.url("/gone"))
    expected = paths.map do |path|
      "#{@site.url(path)}: #{path.size * 100} bytes, #{Zlib.deflate(path * 100).bytesize} compressed\n"
    end

    assert_equal(expected.sort, program.out.lines.sort)
    assert_equal("#{@site.url("/gone")}: 404 \"Status\" (Net::HTTPClientException)\n", program.err)
    assert_predicate(program.status, :success?)
  end

  def test_the_fetcher_survives_what_goes_wrong
    program = run_example("with_threads", "http://127.0.0.1:1/", *["nonsense"] * 20, @site.url("/well"))

    assert_includes(program.err, "http://127.0.0.1:1/: Failed to open TCP connection")
    assert_equal(20, program.err.scan(/^nonsense: /).size)
    assert_includes(program.out, "/well: ")
  end
end
