# frozen_string_literal: true

require "json"
require_relative "support"

module Tools
  # Runs test jobs side by side. Most of them wait most of the time, so there are more of them than cores: as many as
  # the cores can bear that each keeps busy. Those that took longest in an earlier run come first.
  class TestPool
    # So that a test that waits for so long and no longer is not held up by a crowd.
    MOST_PER_CORE = 4

    def initialize(jobs, cores)
      @times = times
      @jobs = jobs.sort_by { |job| -@times.fetch(job.name, job.seconds) }
      @cores = cores
    end

    # Yields each job and its result as it ends.
    def run
      running = []
      ended = Thread::Queue.new
      waiting = @jobs.dup
      until waiting.empty? && running.empty?
        while waiting.any? && room?(running, waiting.first)
          running << waiting.shift
          start(running.last, ended)
        end
        job, result = ended.pop
        running.delete(job)
        @times[job.name] = result.seconds.round(1) if result.ok?
        yield job, result
      end
      Tools.write_whole(record, JSON.generate(@times))
    ensure
      @jobs.each(&:kill)
    end

    private

    def room?(running, job)
      running.empty? || (running.size < MOST_PER_CORE * @cores && [*running, job].sum(&:cores) <= @cores)
    end

    def start(job, ended)
      Thread.new { ended << [job, job.run] }.abort_on_exception = true
    end

    def record
      File.join(Tools.cache, "test_times.json")
    end

    def times
      JSON.parse(File.read(record))
    rescue SystemCallError, JSON::ParserError
      {}
    end
  end
end
