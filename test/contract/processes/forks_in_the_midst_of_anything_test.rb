# frozen_string_literal: true

require "timeout"

require_relative "../../test_helper"
require_relative "../../support/forks"

# A fork while another fiber is in the midst of something, and while the forking one is.
contract "ForkInTheMidst" do
  include TestSupport::Forks

  heddle_only "schedulers"

  # What another task is in the midst of while this one forks; the child does the same anew.
  midst = {
    "a_sleep" => -> { sleep(0.05) },
    "a_read" => -> { IO.pipe.then { |pair| pair[0].wait_readable(0.05) || pair.each(&:close) } },
    "a_select" => -> { IO.pipe.then { |pair| IO.select(pair[0, 1], nil, nil, 0.05) || pair.each(&:close) } },
    "a_queue" => -> { Thread::Queue.new.pop(timeout: 0.05) },
    "a_timeout" => -> { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { sleep } } },
    "a_computing_timeout" => -> { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { loop { Thread.pass } } } },
    "a_lookup" => -> { Array.new(50) { |i| Addrinfo.getaddrinfo("127.0.0.#{i + 1}", 80) } },
    "a_mutex" => -> { Thread::Mutex.new.then { |mutex| mutex.synchronize { mutex.sleep(0.05) } } },
    "a_process" => -> { Process.wait(spawn("sleep 0.05")) },
    "a_mask" => -> { Thread.handle_interrupt(Timeout::Error => :never) { sleep(0.05) } },
    "a_thread_of_the_pool" => -> { 100.times { Dir.children("/") } }
  }

  midst.each do |name, work|
    define_method("test_in_the_midst_of_#{name}") do
      reactor do
        running = go { instance_exec(&work) }
        sleep(0.001)
        own = backend

        assert_equal(":done", in_child { Heddle.run(backend: own) { instance_exec(&work) && :done } || :done })
        running.value
      end
    end
  end

  # What the forking fiber is in the midst of: the child leaves it, and what had been begun in the parent ends.
  def test_the_child_leaves_what_it_was_in
    frames = <<~RUBY
      timeout = ->(&block) { Timeout.timeout(5, &block) }
      FRAMES = {
        timeout: timeout,
        timeouts: ->(&block) { timeout.call { Timeout.timeout(4, ArgumentError, &block) } },
        mask: ->(&block) { Thread.handle_interrupt(RuntimeError => :never, &block) },
        mutex: ->(&block) { Thread::Mutex.new.synchronize(&block) },
        file: ->(&block) { File.open(File::NULL) { block.call } },
        catch: ->(&block) { catch(:there) { throw(:there, block.call) } },
        ensured: ->(&block) { begin; raise "error"; ensure; return block.call; end }
      }.freeze
    RUBY
    out = assert_script(<<~RUBY)
      require "timeout"
      $stdout.sync = true
      #{frames}
      Heddle.run(backend: #{backend.inspect}) do
        others = Array.new(3) { Heddle.spawn { Timeout.timeout(30) { sleep } } }
        sleep(0.001)
        FRAMES.each do |name, frame|
          pid = frame.call { fork }
          next Process.wait(pid) if pid

          again = Heddle.run(backend: #{backend.inspect}) { frame.call { sleep(0.001) && :child } }
          GC.start
          puts("\#{name} \#{again}")
          exit!(0)
        end
        others.each(&:cancel)
        puts("parent")
      end
    RUBY
    names = %w[timeout timeouts mask mutex file catch ensured]

    assert_equal([*names.map { |name| "#{name} child" }, "parent"], out.lines(chomp: true))
  end
end
