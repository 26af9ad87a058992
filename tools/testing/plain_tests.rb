# frozen_string_literal: true

# Runs all test files of some folders in one process, on machines for which bin/test has no packages:
#
#   bundle exec ruby -Itest tools/testing/plain_tests.rb test/contract/waits test/contract/tasks
files = ARGV.flat_map { |folder| Dir.glob(File.expand_path("**/*_test.rb", folder)) }
abort "no test is in #{ARGV.join(" ")}" if files.empty?
files.sort.each { |file| require file }
