# frozen_string_literal: true

# One side of bench/replaced_methods.rb, which starts it: reads lines "NUMBER CALL", answers each with a line of JSON:
# CPU seconds and objects.
#
#   child.rb plain|loaded|used

side = ARGV.first
unless side == "plain"
  $LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
  require "heddle"
  Heddle.run { nil } if side == "used"
end
require_relative "operations"
require "json"

$stdout.sync = true
Dir.mktmpdir("heddle-bench") do |dir|
  place = Bench::ReplacedMethods::Place.new(dir)
  procs = Hash.new { |hash, call| hash[call] = place.compile(call) }
  $stdin.each_line(chomp: true) do |line|
    number, call = line.split(" ", 2)
    call = procs[call]
    GC.start
    GC.disable
    objects = GC.stat(:total_allocated_objects)
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    call.call(Integer(number))
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
    objects = GC.stat(:total_allocated_objects) - objects
    GC.enable
    puts(JSON.generate({ cpu:, objects:, number: Integer(number) }))
  end
end
