# frozen_string_literal: true

# A program of threads that leaves its waiting to tasks: each thread asks one Fetcher for pages, and the Fetcher has
# fifty requests under way on a single thread. In turn it leaves the computing to threads.
#
#   ruby examples/with_threads.rb [URL ...]

require "digest"
require "heddle"
require "net/http"

# Gets pages for threads, in tasks on a thread of its own.
class Fetcher
  Page = Struct.new(:url, :body, :digest)
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

  # Ends the thread, when the requests that are under way have ended.
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
    digest = Heddle.offload { Digest::SHA256.hexdigest(response.body) } # the other tasks go on meanwhile
    job.answer << [Page.new(job.url, response.body, digest), nil]
  rescue StandardError => e
    job.answer << [nil, e] # for the one who has asked
  end
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
        puts "#{page.digest[0, 12]} #{page.body.bytesize} bytes #{page.url}\n"
      rescue StandardError => e
        warn "#{url}: #{e.message} (#{e.class})"
      end
    end
  end
end
workers.each(&:join)
fetcher.close
