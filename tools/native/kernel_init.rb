# frozen_string_literal: true

# Process 1 of the machines that kernels.rb starts; see there. It runs the tests that are named in /tests, in each mode
# that this kernel has, and ends. A line that begins with RESULT has what was found, as JSON.
require "fileutils"
require "json"
require "rbconfig"
require "socket"

$stdout.sync = true
ENV.update("PATH" => "/usr/sbin:/usr/bin:/sbin:/bin", "HOME" => "/root", "LANG" => "C.UTF-8", "TERM" => "dumb",
           "HEDDLE_TEST_TIMEOUT" => "1200")

# Runs a command to its end, and waits for whatever has lost its parent, too.
#
# @return [Array] what it printed, and whether it ended well
def run(*command)
  reader, writer = IO.pipe
  pid = spawn(*command, %i[out err] => writer, in: File::NULL, chdir: "/heddle")
  writer.close
  lines = Thread.new { reader.each_line.map { |line| line.scrub.tap { |text| puts("  #{text}") } }.join }
  loop do
    ended, status = Process.wait2(-1)
    return [lines.join(10) ? lines.value : "", status.success?] if ended == pid
  end
end

RUBY = [RbConfig.ruby, "-Iheddle-server/lib", "-Ilib"].freeze
REFUSE = [RbConfig.ruby, "test/support/api/refused_calls.rb"].freeze
SWITCH = "/proc/sys/kernel/io_uring_disabled"
# The command that comes before all others, and the value of the switch.
MODES = {
  "as it is" => [[], "0"], "io_uring switched off by sysctl" => [[], "2"],
  "io_uring refused as by Docker" => [[*REFUSE, "io_uring"], "0"]
}.freeze
COUNTS = /(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips/

def backend(prefix)
  text, = run(*prefix, *RUBY, "exe/heddle", "doctor")
  kernel = text[/^Kernel.*(?=^Hooks)/m].to_s.lines.map(&:strip)
  [text[/^Backend +(.+)/, 1], kernel.filter_map { |line| line[/\A- (.+?):/, 1] },
   text.scan(/^ +(\w+): not available: (.+)/)]
end

def tests(prefix)
  File.readlines("/tests", chomp: true).map do |file|
    puts("  #{file}")
    text, well = run(*prefix, *RUBY, "-Itest", file)
    runs, failures, errors, skips = text.match(COUNTS)&.captures&.map(&:to_i)
    { file: file, well: well, runs: runs.to_i, failed: failures.to_i + errors.to_i, skipped: skips.to_i }
  end
end

def mode(name, prefix, switch)
  puts("MODE #{name}")
  if File.exist?(SWITCH)
    File.write(SWITCH, switch)
  elsif switch != "0"
    return { mode: name, missing: "this kernel has no #{SWITCH}" }
  end
  backend, lacking, others = backend(prefix)
  _, demo = run(*prefix, *RUBY, "exe/heddle", "demo", "--requests", "50", "--delays", "50")
  { mode: name, backend: backend, lacking: lacking, others: others, demo: demo, tests: tests(prefix) }
end

def prepare
  { "/proc" => "proc", "/sys" => "sysfs", "/dev" => "devtmpfs", "/dev/pts" => "devpts", "/dev/shm" => "tmpfs",
    "/tmp" => "tmpfs" }.each do |at, type|
    FileUtils.mkdir_p(at)
    system("mount", "-t", type, type, at)
  end
  { "fd" => "", "stdin" => "/0", "stdout" => "/1", "stderr" => "/2" }
    .each { |name, which| File.symlink("/proc/self/fd#{which}", "/dev/#{name}") unless File.exist?("/dev/#{name}") }
  Process.setrlimit(:NOFILE, 65_536)
  loopback
end

# The flags IFF_UP and IFF_RUNNING, with SIOCSIFFLAGS.
def loopback = UDPSocket.open { |socket| socket.ioctl(0x8914, ["lo", 0x41].pack("a16sx22")) }

begin
  Dir.chdir("/")
  prepare
  puts("KERNEL #{File.read("/proc/version")}")
  MODES.each { |name, (prefix, switch)| puts("RESULT #{JSON.generate(mode(name, prefix, switch))}") }
rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, the machine ends
  puts(e.full_message(highlight: false))
ensure
  sleep(1) # for the console
  exit! # the kernel panics, restarts at once, and qemu ends
end
