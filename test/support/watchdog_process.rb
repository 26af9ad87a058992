# frozen_string_literal: true

# Runs as a process of its own. Reads "arm SECONDS NAME" and "off" from stdin. When the time is over, a SIGSEGV
# makes the test process print its Ruby and C frames; SIGKILL follows. Ends together with the test process.

pid = Integer(ARGV.fetch(0))
exit!(0) if fork # nobody's child from here on
Process.setsid

def alive?(pid)
  Process.kill(0, pid)
  true
rescue SystemCallError
  false
end

deadline = nil
name = nil
loop do
  if $stdin.wait_readable(1)
    line = $stdin.gets or exit!(0)
    word, seconds, name = line.chomp.split(" ", 3)
    deadline = word == "arm" ? Process.clock_gettime(Process::CLOCK_MONOTONIC) + Integer(seconds) : nil
  end
  exit!(0) unless alive?(pid)
  next if !deadline || Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline

  warn "\n\n#{name}: the test process #{pid} is stuck and does not even switch threads. Its frames follow."
  Process.kill(:SEGV, pid)
  20.times { alive?(pid) && sleep(0.5) }
  Process.kill(:KILL, pid) if alive?(pid)
  exit!(0)
end
