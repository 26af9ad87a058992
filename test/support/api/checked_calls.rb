# frozen_string_literal: true

# Compares each call of a public method of Heddle with its signature while the program runs: its arguments, its value,
# what its block is given and returns. `ruby -r` loads this. At the end it writes into the file HEDDLE_CHECKED_CALLS
# which methods were called, and what did not fit.

require "heddle"
require "json"
require "rbs/test"
require "support/api/signatures"

module TestSupport
  # What the calls have shown.
  module CheckedCalls
    CALLED = {} # rubocop:disable Style/MutableConstant
    MISFITS = {} # rubocop:disable Style/MutableConstant

    # In RBS::Test::Tester::MethodCallTester. A call that is refused need not fit.
    module Collecting
      def call(_receiver, trace)
        call = trace.method_call
        CALLED["#{definition.type_name.to_s.delete_prefix("::")}#{format_method_name(trace.method_name)}"] = true
        return if call.exception? && [ArgumentError, TypeError].any? { |refusal| call.exception.is_a?(refusal) }

        super
      rescue RBS::Test::Tester::TypeError => e
        MISFITS[e.message] = true
      end
    end
  end
end

# The methods of the scheduler are called from the middle of Ruby's own, where no time slice may end.
Heddle.exempt_from_time_slices(Gem.loaded_specs.fetch("rbs").full_gem_path)
RBS.logger_level = "error"
RBS::Test::Tester::MethodCallTester.prepend(TestSupport::CheckedCalls::Collecting)
tester = RBS::Test::Tester.new(env: TestSupport::Signatures.new.environment)
TestSupport::PublicApi.modules.each_value { |one| tester.install!(one, sample_size: 100, unchecked_classes: []) }

pid = Process.pid
at_exit do
  if Process.pid == pid
    result = [TestSupport::CheckedCalls::CALLED.keys, TestSupport::CheckedCalls::MISFITS.keys]
    File.write(ENV.fetch("HEDDLE_CHECKED_CALLS"), JSON.generate(result))
  end
end
