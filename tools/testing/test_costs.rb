# frozen_string_literal: true

require "json"
require_relative "../machine"

module Tools
  # How long each job of a test run takes: as it took in an earlier run on this machine, or as the test file says.
  class TestCosts
    # Seconds, and how many cores the job keeps busy meanwhile.
    Cost = Struct.new(:seconds, :cores, keyword_init: true) do
      # Of CPU time, in seconds.
      def work = seconds * cores
    end

    # @param record [String] the path of what is known of earlier runs
    # @param slowness [#call] says how much longer this machine takes than the test files say; it is asked for a job
    #   that is not in the record
    def initialize(record: File.join(Tools.cache, "test_costs.json"), slowness: Machine.method(:slowness))
      @record = record
      @slowness = slowness
      @costs = earlier
    end

    def of(job)
      @costs.fetch(job.name) { Cost.new(seconds: job.seconds * @slowness.call, cores: job.cores) }
    end

    # An estimate of the time that this number of cores needs for the jobs.
    def total(jobs, cores)
      [jobs.sum { |job| of(job).work } / cores, jobs.map { |job| of(job).seconds }.max.to_f].max
    end

    def note(job, result)
      @costs[job.name] = Cost.new(seconds: result.seconds.round(1), cores: (result.cores || job.cores).round(2))
    end

    def write
      Tools.write_whole(@record, JSON.generate(@costs.transform_values(&:to_h)))
    end

    private

    def earlier
      JSON.parse(File.read(@record), symbolize_names: true).to_h { |name, cost| [name.to_s, Cost.new(**cost)] }
    rescue SystemCallError, JSON::ParserError, TypeError, ArgumentError
      {}
    end
  end
end
