# frozen_string_literal: true

# Checks every ten seconds whether web sites answer, all at the same time, and prints the results. Ctrl-C ends the
# program and prints a summary.
#
#   ruby examples/health_checks.rb [--every 10] [--timeout 3] [URL ...]

require "heddle"
require "net/http"
require "optparse"

# Checks some sites and keeps the figures.
class Health
  Figures = Struct.new(:checks, :failures, :seconds)

  def initialize(urls, timeout)
    @urls = urls
    @timeout = timeout
    @figures = urls.to_h { |url| [url, Figures.new(0, 0, 0.0)] }
  end

  # A site that is down or slow does not hold up the others.
  def check
    tasks = Heddle.settle(@urls, limit: 50) { |url| Heddle.timeout(@timeout) { seconds_of_answer(url) } }
    @urls.zip(tasks) { |url, task| note(url, task) }
  end

  def summary
    @figures.map do |url, figures|
      right = figures.checks - figures.failures
      average = right.zero? ? "no answer" : format("%.3f s on average", figures.seconds / right)
      "#{url}: #{right} of #{figures.checks} checks passed, #{average}"
    end
  end

  private

  # @raise [Net::ProtocolError, SystemCallError, ...] if the site does not answer as it should
  def seconds_of_answer(url)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Net::HTTP.get_response(URI(url)).value
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end

  def note(url, task)
    figures = @figures.fetch(url)
    figures.checks += 1
    if (error = task.error)
      figures.failures += 1
      puts "FAIL #{url}: #{error.message} (#{error.class})"
    else
      figures.seconds += task.value
      puts "ok   #{url}: #{format("%.3f", task.value)} s"
    end
  end
end

seconds = 10
timeout = 3
usage = OptionParser.new("usage: ruby health_checks.rb [--every 10] [--timeout 3] [URL ...]") do |options|
  options.on("--every SECONDS", Float) { |value| seconds = value }
  options.on("--timeout SECONDS", Float) { |value| timeout = value }
end
begin
  usage.parse!
  raise ArgumentError, "--every must be positive" unless seconds.positive?
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end

$stdout.sync = true
health = Health.new(ARGV.empty? ? %w[https://www.ruby-lang.org/ https://bugs.ruby-lang.org/] : ARGV, timeout)
begin
  Heddle.run do
    health.check
    Heddle.every(seconds) { health.check }.wait
  end
rescue Interrupt
  puts "", health.summary
end
