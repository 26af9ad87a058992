# frozen_string_literal: true

# Runs shell commands, as many at a time as there are cores, and prints their output, each line with the number of its
# command.
#
#   ruby examples/run_commands.rb [-j JOBS] 'make -C lib' 'make -C app' ...
#   ruby examples/run_commands.rb [-j JOBS] < file-with-a-command-in-each-line
#
# The exit status is 1 if a command has failed. Ctrl-C ends the commands as well.

require "etc"
require "heddle"
require "optparse"

# @return [Process::Status]
def run(number, command)
  output, writer = IO.pipe
  pid = Process.spawn("sh", "-c", command, in: File::NULL, out: writer, err: writer, pgroup: true)
  writer.close
  output.each_line { |line| $stdout.write("[#{number}] #{line.chomp}\n") }
  Process::Status.wait(pid).tap { pid = nil }
ensure
  [output, writer].each { |io| io&.close }
  stop(pid) if pid
end

# The command, and all that it has started.
def stop(pid)
  Process.kill(:TERM, -pid)
  Process.wait(pid)
rescue SystemCallError
  nil # it has ended by itself
end

jobs = Etc.nprocessors
usage = OptionParser.new("usage: ruby run_commands.rb [-j JOBS] [COMMAND ...]") do |options|
  options.on("-j JOBS", Integer) { |value| jobs = value }
end
begin
  usage.parse!
  raise ArgumentError, "-j must be positive" unless jobs.positive?
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end
commands = ARGV.empty? ? $stdin.readlines(chomp: true).reject(&:empty?) : ARGV

$stdout.sync = true
begin
  numbers = (1..commands.size).to_a
  states = Heddle.map(numbers, limit: jobs) { |number| run(number, commands[number - 1]) }
rescue Interrupt
  abort "ended by Ctrl-C"
end

failed = commands.zip(states).reject { |_, state| state.success? }
failed.each { |command, state| warn "#{command}: #{state.to_s.sub(/\Apid \d+ /, "")}" }
warn "#{commands.size - failed.size} of #{commands.size} commands succeeded"
exit(failed.empty?)
