# frozen_string_literal: true

# Loaded before Heddle (ruby -r): compares each call of a public method with its signature, while the program runs: its
# arguments, its value, what its block is given and returns. What does not fit is written into the file
# HEDDLE_CHECKED_CALLS at the end, after the names of all methods that were called.

require "json"
require "rbs"

signatures = File.expand_path("../../sig", __dir__)
ENV["RBS_TEST_TARGET"] = "Heddle,Heddle::*"
ENV["RBS_TEST_OPT"] = "-r timeout -I #{signatures}"
ENV["RBS_TEST_LOGLEVEL"] = "error"
require "rbs/test/setup"

module TestSupport
  # What the calls have shown.
  module CheckedCalls
    CALLED = {} # rubocop:disable Style/MutableConstant
    MISFITS = {} # rubocop:disable Style/MutableConstant

    # In RBS::Test::Tester::MethodCallTester.
    module Collecting
      def call(_receiver, trace)
        call = trace.method_call
        name = "#{definition.type_name.to_s.delete_prefix("::")}#{format_method_name(trace.method_name)}"
        CALLED[name] = true
        return if call.exception? && [ArgumentError, TypeError].any? { |refusal| call.exception.is_a?(refusal) }

        super
      rescue RBS::Test::Tester::TypeError => e
        MISFITS[e.message] = true
      end
    end
  end
end

RBS::Test::Tester::MethodCallTester.prepend(TestSupport::CheckedCalls::Collecting)

pid = Process.pid
at_exit do
  if Process.pid == pid
    result = [TestSupport::CheckedCalls::CALLED.keys, TestSupport::CheckedCalls::MISFITS.keys]
    File.write(ENV.fetch("HEDDLE_CHECKED_CALLS"), JSON.generate(result))
  end
end
