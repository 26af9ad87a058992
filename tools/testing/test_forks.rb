# frozen_string_literal: true

# Forks a process for each test file. It finds loaded what nearly all test files need, which saves a tenth of a second
# of CPU time for each. Started by test_forker.rb, on the Ruby that is tested:
#   bin/ruby -I test tools/testing/test_forks.rb
#
# A line on the standard input is a JSON array: where the output goes, then the arguments of test_process.rb. The answer
# is a line with the process id. When that process has ended, a line follows: its id, whether it ended well, and how.

require "json"
require "tempfile"
require "test_helper"

REQUESTS = $stdin.dup
ANSWERS = $stdout.dup
ANSWERS.sync = true
# Seconds after which it looks whether a process has ended.
TICK = 0.02

def start(output, *arguments)
  pid = fork do
    trap(:TERM, "DEFAULT")
    Process.setpgid(0, 0)
    [REQUESTS, ANSWERS].each(&:close)
    $stdin.reopen(File::NULL)
    [$stdout, $stderr].each { |stream| stream.reopen(output, "a") }
    ARGV.replace(arguments)
    load File.join(__dir__, "test_process.rb")
  end
  lead_group(pid)
  ANSWERS.puts(JSON.generate([pid]))
  pid
end

# Who gets the id may end the group at once, perhaps before the process has made it.
def lead_group(pid)
  Process.setpgid(pid, pid)
rescue Errno::ESRCH
  nil # it has ended
end

trap(:TERM) { exit! } # not as minitest ends: it would run tests

running = []
loop do
  if REQUESTS.wait_readable(running.empty? ? nil : TICK)
    line = REQUESTS.gets or break
    running << start(*JSON.parse(line))
  end
  while !running.empty? && (pid, status = Process.wait2(-1, Process::WNOHANG))
    running.delete(pid)
    ANSWERS.puts(JSON.generate([pid, status.success? || false, status.to_s]))
  end
end

# Nobody is there any more who would end them.
running.each { |pid| Process.kill(:KILL, -pid) }
exit!
