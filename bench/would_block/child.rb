# frozen_string_literal: true

# One side of bench/would_block.rb, which starts it: reads lines "FORM NUMBER" (FORM is raising or silent), answers
# each with a line of JSON: CPU seconds, objects, and what came out.
#
#   child.rb plain|heddle|run VARIANT

side, name = ARGV
unless side == "plain"
  $LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
  require "heddle"
end
require_relative "variants"
require "json"

# Runs one form of a variant.
class WouldBlockChild
  def initialize(variant)
    @depth = variant.depth
    @io = Bench::WouldBlock.instance_exec(&variant.make)
    @buffer = +""
    loops = <<~RUBY
      def raising(io, number)
        last = nil
        number.times do
          #{variant.raising}
        rescue IO::WaitReadable, IO::WaitWritable => last
        end
        [last.class.name, last.message]
      end

      def silent(io, number)
        last = nil
        number.times { last = #{variant.silent} }
        [last]
      end
    RUBY
    instance_eval(loops, __FILE__, __LINE__ - 15)
  end

  def serve
    $stdout.sync = true
    $stdin.each_line do |line|
      form, number = line.split
      puts(JSON.generate(measure(form, Integer(number))))
    end
  end

  private

  def measure(form, number)
    objects = GC.stat(:total_allocated_objects)
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    result = descend(@depth) { form == "raising" ? raising(@io, number) : silent(@io, number) }
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
    { cpu:, objects: GC.stat(:total_allocated_objects) - objects, operations: number, result: }
  end

  def descend(depth, &) = depth.zero? ? yield : descend(depth - 1, &)

  def connect(server, **options)
    socket = Socket.new(:INET, :STREAM)
    socket.connect_nonblock(server.local_address, **options)
  ensure
    socket.close
    server.accept_nonblock(exception: false).then { |other| other.close unless other == :wait_readable }
  end
end

child = WouldBlockChild.new(Bench::WouldBlock::VARIANTS.fetch(name))
side == "run" ? Heddle.run { child.serve } : child.serve
