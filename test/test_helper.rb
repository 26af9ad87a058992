# frozen_string_literal: true

# The ground of every test: load path, warnings, time limit and leak checks. Start reading at support/test_case.rb.
#
# HEDDLE_TEST_BACKENDS=uring,epoll,threads  which implementations run the contract (threads = plain Ruby, the reference)
# HEDDLE_BACKEND=poll                       the contract runs on this one alone
# HEDDLE_TEST_ENTRY=run|set_scheduler       how a contract test gets its scheduler
# HEDDLE_TEST_TIMEOUT=60                    seconds that each test may take (default 400)
# HEDDLE_VARIANT=assert                     load build/<variant> in place of the release build

$VERBOSE = true

# Most programs that tests start end before YJIT has paid for its own start. This process itself runs with it. The value
# is not "0": the Ruby 3.1 of Debian, with which bin/test and Passenger begin, takes each value for yes, and starts in a
# second.
ENV.delete("RUBY_YJIT_ENABLE")

root = File.expand_path("..", __dir__)
%w[heddle-server/lib lib].map { |name| File.join(root, name) }.each do |lib|
  $LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
end
variant = ENV.fetch("HEDDLE_VARIANT", "release")
$LOAD_PATH.unshift(File.join(root, "build", variant)) unless variant.empty? || variant == "release"
$LOAD_PATH.unshift(__dir__) unless $LOAD_PATH.include?(__dir__)

require "support/signals"
require "support/warnings"
require "minitest/autorun"
require "heddle" unless ENV["HEDDLE_TEST_BACKENDS"] == "threads"
require "support/watchdog"
require "support/leaks"
require "support/tools"
require "support/subprocess"
require "support/test_case"
require "support/backends"
