# frozen_string_literal: true

# The commands behind bin/setup, bin/build and bin/test. They run on whatever
# Ruby the machine has (3.0 or newer) and use its standard library alone.

require_relative "signals"
require_relative "support"

command = ARGV.shift
file, name = {
  "setup" => ["setup_command", :SetupCommand],
  "build" => ["build_command", :BuildCommand],
  "test" => ["test_command", :TestCommand]
}.fetch(command)
require_relative file

begin
  Tools::Signals.set_up
  exit Tools.const_get(name).new(ARGV).run
rescue Tools::Problem => e
  warn "\n#{e.log_tail}" if e.log_tail
  e.report.each { |line| warn "heddle: #{line}" }
  exit 1
rescue SignalException => e
  warn "heddle: interrupted; the next run goes on from here"
  exit 128 + e.signo
rescue Errno::EACCES, Errno::EROFS, Errno::ENOSPC => e
  warn "heddle: #{e.message}: that place must be writable (XDG_CACHE_HOME moves the cache)"
  exit 1
end
