# frozen_string_literal: true

require "timeout"
require_relative "../../test_helper"

# Thread.handle_interrupt holds back the timeouts of a fiber as it does those of a thread.
contract "InterruptMask" do
  # The class that the timeout raises, the class that is masked, and the class for which the mask is lifted at last.
  { "with_a_class" => [[Timeout::Error], Timeout::Error, :immediate],
    "without_a_class" => [[], Timeout::ExitException, :on_blocking] }.each do |name, (given, masked, last)|
    define_method("test_never_#{name}") do
      reactor do
        reached = false
        assert_raises(Timeout::Error) do
          Thread.handle_interrupt(masked => :never) do
            Timeout.timeout(0.02, *given) do
              sleep(0.1)
              reached = true
              Thread.handle_interrupt(masked => last) { sleep(20) }
            end
          end
        end

        assert(reached)
      end
    end
  end

  # What connection pools do.
  def test_the_ensure_block_is_not_struck
    reactor do
      returned = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.05) do
          Thread.handle_interrupt(Exception => :never) do
            Thread.handle_interrupt(Exception => :immediate) { sleep(20) }
          ensure
            sleep(0.05)
            returned = true
          end
        end
      end

      assert(returned)
    end
  end

  # It expires in the guarded part, which goes to its end.
  def test_it_expires_in_the_guarded_part
    reactor do
      returned = after = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.03) do
          Thread.handle_interrupt(Exception => :never) do
            sleep(0.1)
            returned = true
          end
          after = true
        end
      end

      assert(returned)
      refute(after, "it is raised at the end of the mask")
    end
  end

  def test_the_block_of_the_timeout_ends_under_the_mask
    reactor do
      steps = []
      assert_raises(Timeout::Error) do
        Thread.handle_interrupt(Timeout::Error => :never) do
          Timeout.timeout(0.02, Timeout::Error) { sleep(0.1) }
          steps << :done
        end
      end

      assert_equal([:done], steps)
      sleep(0.01)
    end
  end

  def test_another_class_is_not_held_back
    reactor do
      assert_raises(ZeroDivisionError) do
        Thread.handle_interrupt(ArgumentError => :never) { Timeout.timeout(0.02, ZeroDivisionError) { sleep } }
      end
    end
  end

  def test_the_nearest_class_decides
    reactor do
      assert_raises(ZeroDivisionError) do
        Thread.handle_interrupt(Exception => :never, StandardError => :immediate) do
          Timeout.timeout(0.02, ZeroDivisionError) { sleep }
        end
      end
    end
  end

  def test_the_mask_of_one_fiber_is_not_that_of_another
    reactor do
      ready = Thread::Queue.new
      guarded = go do
        Thread.handle_interrupt(Timeout::Error => :never) { ready.pop }
      end
      settle
      assert_raises(Timeout::Error) { Timeout.timeout(0.02, Timeout::Error) { sleep(20) } }
      ready.push(:popped)

      assert_equal(:popped, guarded.value)
    end
  end

  # A wake that the mask held back is no wake.
  def test_the_wait_under_the_mask_is_whole
    reactor do
      reader, writer = pipe
      job = go { sleep(0.1) && writer.write("x") }
      text = nil
      assert_raises(Timeout::Error) do
        Thread.handle_interrupt(Timeout::Error => :never) do
          Timeout.timeout(0.02, Timeout::Error) { text = reader.readpartial(1) }
        end
      end

      assert_equal("x", text)
      job.value
    end
  end

  def test_its_value_and_its_errors
    reactor do
      assert_equal(:value, Thread.handle_interrupt(Timeout::Error => :never) { :value })
      assert_raises(ArgumentError) { Thread.handle_interrupt(Timeout::Error => :sometimes) { nil } }
      assert_raises(ArgumentError) { Thread.handle_interrupt(Timeout::Error => :never) }
      assert_raises(ZeroDivisionError) { Thread.handle_interrupt(Timeout::Error => :never) { 1 / 0 } }
      assert_equal(:thrown, catch(:out) { Thread.handle_interrupt(Timeout::Error => :never) { throw(:out, :thrown) } })
    end
  end

  def test_a_fork_inside
    reactor do
      Thread.handle_interrupt(Timeout::Error => :never) do
        pid = fork { exit!(Thread.handle_interrupt(Timeout::Error => :immediate) { 0 }) }

        assert_predicate(Process.wait2(pid).last, :success?)
      end
    end
  end
end
