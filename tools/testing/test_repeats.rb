# frozen_string_literal: true

module Tools
  # Runs the few tests that failed beside the others once more, each alone. A test that passes then is unsteady: a slow
  # machine spoilt it, or it has found a race. It is reported, and does not make the whole run fail. CRuby's own runner
  # does this too: test/lib/test/unit.rb, --retry.
  class TestRepeats
    # More failures than this are no accident.
    MOST = 15

    # A random operation that fails has found something, even if it does not happen again.
    NEVER = %r{\Atest/(fuzz|soak)/}

    # @param failed [Array<Array(TestJob, TestJob::Result)>]
    def initialize(failed)
      @failed = failed
    end

    # Yields each job and the name of its test, before it runs.
    # @return [Array<Array(TestJob, String)>] the tests that passed
    def run
      tests = @failed.flat_map { |job, result| result.failed_tests.map { |name, _| [job, name] } }
      return [] if tests.size > MOST || @failed.any? { |job, result| result.trouble || job.name.match?(NEVER) }

      tests.select do |job, name|
        next unless name

        yield job, name
        job.alone(name).run.ok?
      end
    end
  end
end
