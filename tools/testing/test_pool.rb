# frozen_string_literal: true

require_relative "test_costs"

module Tools
  # Runs test jobs side by side. Most of them wait most of the time, so there are more of them than cores: the next one
  # starts when a part of a core is idle. The longest come first.
  class TestPool
    # Beside more tests than these, a test that waits for a limited time would be held up.
    MOST_PER_CORE = 4

    # Seconds between two looks at what is idle.
    PAUSE = 0.5

    # How much of a core must be idle for one more job.
    PART = 0.25

    # @param costs [TestCosts]
    # @param idle [#look] says how many cores were idle since it was last asked; or nil, then the costs say it
    # @param deadline [Float, nil] on the monotonic clock: no job begins that would end later
    def initialize(jobs, cores, costs: TestCosts.new, idle: nil, deadline: nil)
      @costs = costs
      @idle = idle
      @waiting = jobs.sort_by { |job| -cost(job).seconds }
      @cores = cores
      @deadline = deadline
      @running = {}
      @expected = @used = 0.0
    end

    # Yields each job and its result as it ends.
    # @return [Array<TestJob>] those for which there was no time
    def run
      ended = Thread::Queue.new
      ticker = Thread.new { loop { sleep(PAUSE) && (ended << nil) } }
      until (start_some(ended) || @running).empty?
        job, result = ended.pop
        next look unless job

        note(job, result)
        yield job, result
      end
      @waiting
    ensure
      ticker.kill
      @running.each_key(&:kill)
      @costs.write
    end

    # An estimate of the time until the last one ends, from the earlier costs and from how this run goes.
    # @return [Float] seconds
    def remaining
      left = @running.map { |job, started| [cost(job).seconds - (now - started), 0].max }
      work = @waiting.sum { |job| cost(job).work } + @running.keys.zip(left).sum { |job, time| time * cost(job).cores }
      [work / @cores, *left].max * pace
    end

    private

    def cost(job) = @costs.of(job)
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # @return [nil, Hash] nil when one may end now
    def start_some(ended)
      while room? && (job = @waiting.find { |one| in_time?(one) })
        start(@waiting.delete(job), ended)
      end
    end

    def start(job, ended)
      @running[job] = now
      @left -= cost(job).cores if @left
      Thread.new { ended << [job, job.run] }.abort_on_exception = true
    end

    # Each core has a job; there are more only while they leave something idle.
    def room?
      return false if @running.size >= MOST_PER_CORE * @cores

      @left ? @running.size < @cores || @left >= PART : @running.keys.sum { |job| cost(job).cores } < @cores
    end

    # The idle time, less the time of tests that have begun since.
    def look = @left = @idle&.look

    def in_time?(job) = @deadline.nil? || now + (cost(job).seconds * pace) <= @deadline

    # How much longer jobs take than was expected.
    def pace = @expected.zero? ? 1.0 : @used / @expected

    def note(job, result)
      @running.delete(job)
      @expected += cost(job).seconds
      @used += result.seconds
      @costs.note(job, result) if result.ok?
    end
  end
end
