# frozen_string_literal: true

require "json"
require_relative "support"

module Tools
  # Runs test jobs side by side. Most of them wait most of the time, so there are more of them than cores: as many as
  # the cores can bear that each keeps busy. Those that took longest in an earlier run come first, and one for which
  # there is no room lets smaller ones go before it.
  class TestPool
    # So that a test that waits for so long and no longer is not held up by a crowd.
    MOST_PER_CORE = 6

    # How long a job takes, in seconds, and how many cores it keeps busy.
    Cost = Struct.new(:seconds, :cores, keyword_init: true)

    # @param record [String] the path of what is known of earlier runs
    def initialize(jobs, cores, record: File.join(Tools.cache, "test_costs.json"))
      @record = record
      @costs = earlier_costs
      @jobs = jobs.sort_by { |job| -cost(job).seconds }
      @cores = cores
    end

    # Yields each job and its result as it ends.
    def run
      running = []
      ended = Thread::Queue.new
      waiting = @jobs.dup
      until waiting.empty? && running.empty?
        while (next_one = waiting.find { |job| room?(running, job) })
          running << waiting.delete(next_one)
          start(next_one, ended)
        end
        job, result = ended.pop
        running.delete(job)
        note(job, result) if result.ok?
        yield job, result
      end
      Tools.write_whole(@record, JSON.generate(@costs.transform_values(&:to_h)))
    ensure
      @jobs.each(&:kill)
    end

    private

    def room?(running, job)
      return true if running.empty?

      running.size < MOST_PER_CORE * @cores && [*running, job].sum { |one| cost(one).cores } <= @cores
    end

    # As of an earlier run, or as the test file says.
    def cost(job) = @costs.fetch(job.name) { Cost.new(seconds: job.seconds, cores: job.cores) }

    def note(job, result)
      @costs[job.name] = Cost.new(seconds: result.seconds.round(1), cores: (result.cores || job.cores).round(2))
    end

    def start(job, ended)
      Thread.new { ended << [job, job.run] }.abort_on_exception = true
    end

    def earlier_costs
      JSON.parse(File.read(@record), symbolize_names: true).to_h { |name, cost| [name.to_s, Cost.new(**cost)] }
    rescue SystemCallError, JSON::ParserError, TypeError, ArgumentError
      {}
    end
  end
end
