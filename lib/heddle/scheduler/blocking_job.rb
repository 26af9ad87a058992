# frozen_string_literal: true

module Heddle
  using Internal

  class Scheduler
    # One blocking operation: it runs on a thread of the pool while a fiber waits for it.
    class BlockingJob
      # Raised in the pool's thread to end an operation that is no longer wanted (its system call gets EINTR).
      class Stop < Exception; end # rubocop:disable Lint/InheritException
      # Seconds between two attempts to interrupt the system call of an operation that makes something.
      STOP_INTERVAL = 0.002
      # The value with which Scheduler#outlast reports a Fiber#kill.
      KILL = true
      private_constant :KILL

      # Raises a Stop that has arrived, on the pool's thread. transfer.c calls it, too.
      def self.check_stop
        Thread.handle_interrupt(Stop => :immediate) { Thread.pass }
      end

      # +whole+: the operation may make something (a descriptor) that a Stop after its system call would lose. So the
      # Stop is raised in the call alone, again and again, because the call may not have begun. The result -EINTR says
      # that it was interrupted. +discard+: is called with a result that nobody takes. +stop+: makes the operation end,
      # in place of a Stop. +name+: describes the operation in words.
      def initialize(work, discard: nil, whole: !discard.nil?, stop: nil, name: "a blocking operation")
        @work = work
        @discard = discard
        @whole = whole
        @stop = stop
        @done = Completion.new(*name, "on a thread of the pool")
        @lock = Thread::Mutex.new
        @thread = @result = @error = nil
        @stopped = @stop_failed = @sent_back = false
      end

      # @return [Boolean] has a thread that was killed left it undone?
      def sent_back? = @sent_back

      # Ends the wait for it. The fiber hands it to the pool once more, because a thread that is being killed must start
      # no other one.
      #
      # @return [void]
      def send_back
        @sent_back = true
        @done.close
      end

      # Called on the pool's thread.
      def run
        return unless @lock.synchronize { @thread = Thread.current unless @stopped }

        @result = Thread.handle_interrupt(Stop => @whole ? :never : :immediate) { @work.call }
        ended = true
      rescue Exception => e # rubocop:disable Lint/RescueException -- handed to the fiber that waits
        @error = e
      ensure
        @error ||= ThreadError.new("the program has killed the thread") unless ended || @stopped
        begin
          @lock.synchronize { @thread = nil }
          drop_late_stop
        ensure
          @done.close
        end
      end

      # Waits, on the fiber, for the end of the operation. It never returns earlier, even when an exception or a
      # Fiber#kill arrives, because the operation works on memory of the caller. But an operation that has not begun
      # leaves the line of the pool at once.
      #
      # @param pool [BlockingPool]
      def wait(pool)
        came = Fiber.scheduler.outlast { |so_far| done?(pool, so_far) }
        ended = true
        @sent_back &&= !came
        outcome(came) unless @sent_back
      ensure
        unless ended # the thread is being killed
          Fiber.scheduler.outlast { done?(pool, [KILL]) }
          @discard&.call(@result) if @result
        end
      end

      private

      # Drops a Stop that arrived when the operation had ended, because it must not be raised in the next operation on
      # this thread.
      def drop_late_stop
        BlockingJob.check_stop while Thread.pending_interrupt?(Stop)
      rescue Stop
        retry
      end

      # Waits, or ends the operation if an exception is pending for the fiber.
      def done?(pool, came)
        stop(pool, came) if came
        @done.pop(timeout: (STOP_INTERVAL if came && @whole))
        @done.closed?
      end

      def stop(pool, came)
        return interrupt unless @stop && @lock.synchronize { @thread }
        return interrupt if @stop_failed || came.last == KILL || (came.last.is_a?(Cancelled) && came.last.last?)

        call_stop unless @stopped
      ensure
        @stopped = true
        @done.close if pool.leave_line(self)
      end

      # It does not hold the lock, which the operation takes at its end: the stop may wait although it must not.
      def call_stop
        @stopped = @stop_failed = true # unless the stop ends: another exception may end it, too
        @stop.call
        @stop_failed = false
      rescue StandardError => e
        ErrorReport.print(e, Task.here, "stop: of Heddle.offload")
        interrupt
      end

      def interrupt
        @lock.synchronize do
          @stopped = true
          @thread&.raise(Stop)
        end
      end

      # Returns the result of an operation that succeeded although it should stop, because it may have made something (a
      # descriptor). The exception is raised in the fiber at its next wait. An exception for the thread is raised first,
      # as in plain Ruby.
      def outcome(came)
        raised = first_of(came) if came
        raises = raised && (without_result? || for_the_thread?(raised))
        left = (came || []) - [KILL]
        left -= [raised] if raises
        left.each { |error| Fiber.scheduler.put_back(error) }
        raise_it(raised) if raises
        raise_here(@error) if @error

        @result
      end

      # An operation that its own +stop+ has ended may return anything.
      def without_result? = @error || @result.nil? || @result == -Errno::EINTR::Errno || @stop

      # Chooses the exception to raise in the fiber: a kill, then an exception for the thread, then the earliest
      # exception.
      def first_of(came)
        return KILL if came.include?(KILL)

        came.find { |error| Fiber.scheduler.for_the_thread?(error) } || came.first
      end

      # The result is not taken then.
      def for_the_thread?(raised)
        return false if KILL.equal?(raised) || !Fiber.scheduler.for_the_thread?(raised)

        @discard&.call(@result)
        true
      end

      # Raises it with the backtrace of the fiber, because the backtrace of the thread does not help.
      def raise_here(error)
        error.set_backtrace(nil)
        raise error
      end

      def raise_it(raised)
        raise raised unless KILL.equal?(raised)

        Fiber.new { nil }.resume # at the end of every switch Ruby checks whether the fiber was killed
      end
    end
    private_constant :BlockingJob
  end
end
