# frozen_string_literal: true

module Heddle
  module Testing
    # Makes the time limits of queues go by the virtual clock. Ruby looks at the machine's clock when such a wait has
    # ended, and waits once more if the time is not over there. Outside of Heddle::Testing.run nothing changes.
    module TimedQueues
      # Ends a wait.
      class Over < Exception; end # rubocop:disable Lint/InheritException -- no rescue of a program may catch it
      private_constant :Over

      # @return [Object, nil] what the block returns; nil when the time is over
      def self.within(seconds)
        pending = Over.new("the time of the queue is over")
        Scheduler.current.timeout_after(seconds, pending, nil) { yield }
      rescue Over => e
        raise unless e.equal?(pending)
      end

      # Does a time limit go by the virtual clock here?
      def self.virtual?(timeout)
        !timeout.nil? && !Testing.clock.nil? && !Scheduler.current.nil? && timeout.is_a?(Numeric) && timeout.positive?
      end

      # The methods that take something out.
      module Pop
        %i[pop shift deq].each do |name|
          define_method(name) do |non_block = false, timeout: nil|
            next super(non_block, timeout:) if non_block || !TimedQueues.virtual?(timeout)

            TimedQueues.within(timeout) { super(false) }
          end
        end
      end

      # The methods that put something in.
      module Push
        %i[push enq <<].each do |name|
          define_method(name) do |object, non_block = false, timeout: nil|
            next super(object, non_block, timeout:) if non_block || !TimedQueues.virtual?(timeout)

            TimedQueues.within(timeout) { super(object, false) }
          end
        end
      end

      { Thread::Queue => [Pop], Thread::SizedQueue => [Pop, Push] }.each { |queue, methods| queue.prepend(*methods) }
    end
    private_constant :TimedQueues
  end
end
