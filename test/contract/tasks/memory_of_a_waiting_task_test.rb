# frozen_string_literal: true

require "test_helper"

# The stack of a fiber takes memory page by page. A task that waits needs no page more than a fiber of plain Ruby.
contract "MemoryOfAWaitingTask" do
  heddle_only("memory")

  count = <<~RUBY
    require "socket"
    COUNT = 2000
    def used
      3.times { GC.start }
      Integer(File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1]) * 1024
    end
  RUBY

  plain = <<~RUBY
    #{count}
    before = used
    fibers = Array.new(COUNT) { Fiber.new { Fiber.yield }.tap(&:resume) }
    print((used - before) / fibers.size)
  RUBY

  { queue: "queue.pop", queue_with_a_timeout: "queue.pop(timeout: 3600)",
    socket: "sockets[number].first.readpartial(1)" }.each do |name, wait|
    define_method(:"test_#{name}") do
      skip("no /proc/self/status") unless File.exist?("/proc/self/status")
      skip("builds for tests have larger frames") unless ENV.fetch("HEDDLE_VARIANT", "release") == "release"
      task = Integer(assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend }))
        #{count}
        Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
        sockets = Array.new(#{name == :socket ? "COUNT" : 0}) { UNIXSocket.pair }
        queue = Thread::Queue.new
        Heddle.run do
          before = used
          COUNT.times { |number| Fiber.schedule { #{wait} } }
          sleep(0.05)
          print((used - before) / COUNT)
          queue.close
          sockets.each { |_, other| other.write("x") }
        end
      RUBY

      assert_operator(task, :>, 4096)
      assert_operator(task - Integer(assert_script(plain, heddle: false)), :<, 3500)
    end
  end
end
