# frozen_string_literal: true

require "rbconfig"

module TestSupport
  # Ends the test process when a test takes too long, and says where it stood. A thread does it while Ruby still
  # switches threads; a process outside (see watchdog_process.rb) does it when not even that works.
  module Watchdog
    LIMIT = Integer(ENV.fetch("HEDDLE_TEST_TIMEOUT", "400"))
    # Not $stderr: a test may have put something else in its place.
    OUTPUT = STDERR # rubocop:disable Style/GlobalStdStream
    # Seconds that the thread gets before the process outside acts.
    MARGIN = 10

    @failed = []

    class << self
      # Minitest reports failures at the end, which a process that is ended does not reach.
      def failed(result)
        @failed << result
      end

      def watch(name, limit)
        start
        @current = [name, now + limit, limit]
        tell("arm #{limit + MARGIN} #{name}")
        yield
      ensure
        @current = nil
        tell("off")
      end

      # True for the watchdog's own thread.
      def thread?(thread)
        thread.equal?(@thread)
      end

      # Process ids of all descendants of a process.
      def descendants(pid)
        parents = Dir.glob("/proc/[0-9]*/stat").filter_map do |file|
          # The name stands in brackets and may hold blanks: the parent's id is the second word after it.
          [Integer(file[/\d+/]), File.read(file)[/.*\) \S (\d+)/m, 1].to_i]
        rescue SystemCallError
          nil
        end
        found = [pid]
        found.each { |parent| parents.each { |child, of| found << child if of == parent && !found.include?(child) } }
        found.drop(1)
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def start
        return if @pid == Process.pid

        @pid = Process.pid
        start_process
        @thread = Thread.new { loop { check(sleep(0.25)) } }
        @thread.name = "watchdog"
        @thread.report_on_exception = true
      end

      # The process is started by a child that ends at once, so that it is nobody's child in Process.wait(-1).
      def start_process
        reader, @pipe = IO.pipe
        script = File.join(__dir__, "watchdog_process.rb")
        Process.wait(spawn(RbConfig.ruby, "--disable=gems", script, @pid.to_s, in: reader, out: :err))
        reader.close
      end

      def tell(line)
        @pipe.write("#{line}\n") if @pid == Process.pid
      rescue Errno::EPIPE
        nil # the process outside is gone: the thread still watches
      end

      def check(_slept)
        name, deadline, limit = @current
        return if !deadline || now < deadline

        report(name, limit)
        Watchdog.descendants(@pid).each { |pid| quietly { Process.kill(:KILL, pid) } }
        exit!(1)
      end

      def report(name, limit)
        @failed.each { |result| OUTPUT.write("\n#{result}\n") }
        OUTPUT.write("\n\n#{name} took longer than #{limit} s: the test process ends here.\n")
        Thread.list.each { |thread| OUTPUT.write("\n#{thread.inspect}\n  #{frames(thread)}\n") }
        ObjectSpace.each_object(Fiber).first(50).each { |fiber| report_fiber(fiber) }
        quietly { OUTPUT.write("\n#{Heddle.dump}\n") } if defined?(Heddle) && Heddle.respond_to?(:dump)
      end

      def report_fiber(fiber)
        return if !fiber.alive? || fiber.inspect.include?("(resumed)") # that one's thread is in the list

        OUTPUT.write("\n#{fiber.inspect}\n  #{quietly { frames(fiber) }}\n")
      end

      def frames(owner)
        owner.backtrace&.grep_v(%r{/minitest[-/]})&.join("\n  ")
      end

      def quietly
        yield
      rescue StandardError => e
        "(#{e.message})"
      end
    end
  end
end
