# frozen_string_literal: true

# Reads the pages of a site, from link to link, and lists the pages that cannot be read.
#
#   ruby examples/crawl.rb [URL] [PAGES]
#
# It obeys robots.txt, and makes at most four requests at a time and ten in a second. If the server cannot give a page
# now, the program asks again, after a pause that grows each time.

require "heddle"
require "net/http"
require "optparse"

# One visit to a site.
class Crawl
  LINK = /<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)/i
  TEMPORARY = [Net::HTTPFatalError, Timeout::Error, IOError, SystemCallError, SocketError].freeze

  def initialize(start, most)
    @start = start
    @most = most
    @found = Set.new
    @done = 0
    @broken = {}
    @pace = Heddle::RateLimiter.new(10, per: 1)
  end

  # @return [Hash] the URLs of the pages that could not be read, each with the reason
  def run
    Heddle.run do
      @forbidden = forbidden_paths
      @pool = Heddle::FiberPool.new(4)
      visit(@start)
    end
    @broken
  end

  private

  def visit(url)
    return if @found.size >= @most || url.path.start_with?(*@forbidden) || !@found.add?(url)

    @pool.spawn(name: url.to_s) do
      links(url, read(url)).each { |link| visit(link) }
    rescue StandardError => e
      @broken[url] = "#{e.message} (#{e.class})"
    ensure
      @done += 1
      $stderr.print("\r[#{("#" * (40 * @done / @found.size)).ljust(40)}] #{@done} of #{@found.size} pages ")
    end
  end

  def read(url, tries = 0)
    @pace.acquire { get(url) }
  rescue *TEMPORARY
    raise if (tries += 1) == 4

    sleep((2**tries) * rand(0.1..0.2))
    retry
  end

  def get(url)
    response = Heddle.timeout(30) { Net::HTTP.get_response(url, "User-Agent" => "heddle-example-crawl") }
    response.value unless response.is_a?(Net::HTTPRedirection) # raises an error, unless the page is there
    response["location"] ? "<a href='#{response["location"]}'>" : response.body
  end

  def links(url, page)
    page.scan(LINK).flatten.filter_map do |link|
      link = URI.join(url, link.gsub("&amp;", "&").sub(/#.*/, ""))
      link if link.is_a?(URI::HTTP) && link.origin == @start.origin
    rescue URI::Error
      nil # this is no URL
    end
  end

  # What robots.txt forbids everybody to read.
  def forbidden_paths
    rules = read(URI.join(@start, "/robots.txt"))[/^user-agent:\s*\*\s*$(.*?)(?=^user-agent:|\z)/mi, 1]
    rules.to_s.scan(/^disallow:\s*(\S+)/i).flatten
  rescue Net::HTTPClientException
    [] # the server has no robots.txt
  end
end

usage = OptionParser.new("usage: ruby crawl.rb [URL] [PAGES]")
begin
  usage.parse!
  url = URI(ARGV[0] || "https://www.ruby-lang.org/en/")
  raise ArgumentError, "#{url} is no URL of a site" unless url.is_a?(URI::HTTP) && url.host

  pages = Integer(ARGV[1] || 100)
rescue OptionParser::ParseError, ArgumentError, URI::Error => e
  abort "#{e.message}\n#{usage.banner}"
end

begin
  broken = Crawl.new(url, pages).run
  broken.each { |page, reason| puts "#{page}: #{reason}" }
  exit(broken.empty?)
rescue *Crawl::TEMPORARY => e
  abort "the site cannot be read: #{e.message}"
rescue Interrupt
  abort "\nended by Ctrl-C"
end
