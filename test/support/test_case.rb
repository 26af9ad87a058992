# frozen_string_literal: true

# The base class of all tests. Each test has a time limit, and must leave no descriptor, child process or thread behind.
class HeddleTest < Minitest::Test
  include TestSupport::Tools
  include TestSupport::Subprocess

  class << self
    # Seconds that each test of this class may take. The whole test process ends when one takes longer.
    def time_limit(seconds = nil)
      @time_limit = seconds if seconds
      @time_limit || (superclass.respond_to?(:time_limit) ? superclass.time_limit : TestSupport::Watchdog::LIMIT)
    end
  end

  def run
    TestSupport::Watchdog.watch("#{self.class}##{name}", self.class.time_limit) do
      super.tap { |result| TestSupport::Watchdog.failed(result) unless result.passed? || result.skipped? }
    end
  end

  def before_setup
    super
    TestSupport::Warnings.clear
    @leaks_before = TestSupport::Leaks.snapshot
  end

  def after_teardown
    super
    close_kept
    remove_tempdirs
    left = TestSupport::Leaks.left_since(@leaks_before)
    TestSupport::Leaks.clean(@leaks_before) if left
    seen = TestSupport::Warnings.clear
    return unless failures.empty? # a failing test rarely cleans up: the first failure says more

    flunk("left behind: #{left}") if left
    flunk("warnings: #{seen.join}") unless seen.empty?
  end
end
