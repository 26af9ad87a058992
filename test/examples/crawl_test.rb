# frozen_string_literal: true

# bin/test: takes 12 s, 0.4 of a core

require_relative "../test_helper"
require "support/examples"
require "support/site"

contract "CrawlExample" do
  include TestSupport::Examples

  def teardown
    @site&.close
    super
  end

  def site(&) = @site = TestSupport::Site.new(&)

  def linking(*paths) = paths.map { |path| "<p><a class='x' href=\"#{path}\">there</a></p>" }.join

  def paths = @site.requests.map(&:path)

  def test_reads_all_pages_and_names_the_broken_ones
    site do |request|
      case request.path
      when "/" then linking("/a", "b?x=1&amp;y=2#part", "/old", "http://127.0.0.1:1/", "mailto:me", "/private/x")
      when "/a" then linking("/", "/b?x=1&y=2", "/gone")
      when "/old" then [301, "", "Location: /new"]
      when "/robots.txt" then "User-agent: other\nDisallow: /a\n\nUser-agent: *\nDisallow: /private\n"
      when "/gone" then [404, "nothing"]
      else "the end"
      end
    end
    program = run_example("crawl", @site.url)

    assert_equal(%w[/ /a /b?x=1&y=2 /gone /new /old /robots.txt], paths.sort)
    assert_equal("#{@site.url("/gone")}: 404 \"Status\" (Net::HTTPClientException)\n", program.out)
    assert_equal(1, program.status.exitstatus)
  end

  def test_is_polite
    site do |request|
      sleep(0.05)
      request.path == "/" ? linking(*(1..12).map { |number| "/#{number}" }) : "page"
    end
    took = elapsed { assert_equal("", run_example("crawl", @site.url, 10).out) }

    assert_equal(11, @site.requests.size, "with robots.txt")
    assert_operator(@site.most, :<=, 4)
    assert_operator(took, :>=, 1, "eleven in less than a second")
  end

  def test_tries_again_what_fails_for_now
    tries = 0
    site { |request| request.path == "/" && (tries += 1) < 3 ? [503, "busy"] : "there" }

    assert_equal(0, run_example("crawl", @site.url).status.exitstatus)
    assert_equal(3, tries)
  end

  def test_gives_up_in_the_end
    site { |request| request.path == "/" ? [500, "broken"] : [404, ""] }
    program = run_example("crawl", @site.url)

    assert_includes(program.out, "#{@site.url}: 500 \"Status\" (Net::HTTPFatalError)")
    assert_equal(4, paths.count("/"))
  end

  def test_a_site_that_cannot_be_reached
    program = run_example("crawl", "http://127.0.0.1:1/")

    assert_match(/\Athe site cannot be read: Failed to open TCP connection to 127\.0\.0\.1:1 .*\n\z/, program.err)
    assert_equal(1, program.status.exitstatus)
  end

  def test_shows_its_progress
    site { |request| request.path == "/" ? linking("/a") : "page" }

    half, whole = [20, 40].map { |width| ("#" * width).ljust(40) }

    assert_equal("\r[#{half}] 1 of 2 pages \r[#{whole}] 2 of 2 pages ", run_example("crawl", @site.url).err)
  end

  def test_ctrl_c
    site { sleep }
    program = start_example("crawl", @site.url)
    wait_until("the first request") { @site.requests.any? }
    program.signal(:INT)

    assert_equal(1, ended(program).exitstatus)
    assert_equal("\nended by Ctrl-C\n", program.err)
  end
end
