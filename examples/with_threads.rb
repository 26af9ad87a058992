# frozen_string_literal: true

# A program with threads that lets tasks wait for the network: the threads ask one Fetcher for pages, and the Fetcher
# has up to fifty requests under way on a single thread. It lets other threads compute: they compress the pages.
#
#   ruby examples/with_threads.rb [URL ...]

require "heddle"
require "net/http"
require "optparse"
require "zlib"

# Gets pages for threads, in tasks on a thread of its own.
class Fetcher
  Page = Struct.new(:url, :body, :compressed)
  Job = Struct.new(:url, :answer)

  def initialize(limit: 50)
    @jobs = Thread::Queue.new
    @thread = Thread.new { Heddle.each(jobs, limit: limit) { |job| perform(job) } }
  end

  # For any thread, and for any task.
  #
  # @return [Page]
  # @raise [StandardError] what has gone wrong with it
  def get(url)
    job = Job.new(url, Thread::Queue.new)
    @jobs << job
    page, error = job.answer.pop
    error ? raise(error) : page
  end

  # Waits for the requests that are under way, and ends the thread.
  def close
    @jobs.close
    @thread.join
  end

  private

  # They come one by one, until the queue is closed.
  def jobs = Enumerator.produce { @jobs.pop || raise(StopIteration) }

  def perform(job)
    response = Net::HTTP.get_response(URI(job.url))
    response.value # raises an error, unless the page is there
    compressed = Heddle.offload { Zlib.deflate(response.body) } # the other tasks go on meanwhile
    job.answer << [Page.new(job.url, response.body, compressed), nil]
  rescue StandardError => e
    job.answer << [nil, e] # for the one who has asked
  end
end

usage = OptionParser.new("usage: ruby with_threads.rb [URL ...]")
begin
  usage.parse!
rescue OptionParser::ParseError => e
  abort "#{e.message}\n#{usage.banner}"
end

urls = Thread::Queue.new
(ARGV.empty? ? %w[https://www.ruby-lang.org/ https://docs.ruby-lang.org/] : ARGV).each { |url| urls << url }
urls.close

fetcher = Fetcher.new
workers = Array.new(8) do
  Thread.new do
    while (url = urls.pop)
      begin
        page = fetcher.get(url)
        puts "#{page.url}: #{page.body.bytesize} bytes, #{page.compressed.bytesize} compressed\n"
      rescue StandardError => e
        warn "#{url}: #{e.message} (#{e.class})"
      end
    end
  end
end
workers.each(&:join)
fetcher.close
