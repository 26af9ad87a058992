# frozen_string_literal: true

module Heddle
  class Server
    # Shows whether the client of a request leaves before its answer has ended. The application finds it as
    # env["heddle.disconnected"]. A client leaves when it closes its connection, or its own direction of it, or resets
    # its stream of HTTP/2. With HTTP/1 the server notices that within a second.
    class Disconnected
      # @private
      # @param left [#call] returns whether the client has left by now
      def initialize(&left)
        @left = left
        @gone = @over = false
        @waiting = nil
        @tasks = []
      end

      # @return [Boolean] whether the client has left by now
      def call
        @gone = true if !@gone && !@over && @left.call
        @gone
      end

      # Waits until the client has left. Tasks and threads may wait for it.
      #
      # @param timeout [Numeric, nil] seconds
      # @return [Boolean] false: the answer has ended before that, or the time is over
      # @raise [ArgumentError] if the timeout is not a number
      def wait(timeout = nil)
        Check.time("timeout", timeout)
        waiting = @waiting ||= Thread::Queue.new
        waiting.close if @gone || @over
        waiting.pop(timeout:)
        @gone
      end

      # Returns at once. When the client leaves, the task that has called this is cancelled. This may be the task of the
      # request, or tasks that the request has started. Work that must not be interrupted in its midst, such as a
      # transaction, can be protected by Heddle.shield.
      #
      # @return [void]
      # @raise [Heddle::Error] outside of tasks
      def cancel
        task = Heddle.current_task or raise Error, "no task runs here that could be cancelled"
        return task.cancel(REASON) if @gone

        @tasks.reject!(&:finished?)
        @tasks << task unless @tasks.include?(task)
      end

      REASON = "the client has left"
      private_constant :REASON

      # @private Returns whether anybody wants to know that the client leaves.
      def awaited? = !@gone && !(@waiting.nil? && @tasks.empty?)

      # @private
      def left!
        return if @over || @gone

        @gone = true
        @waiting&.close
        (@tasks - [Heddle.current_task]).each { |task| task.cancel(REASON) }
      end

      # @private Notes that the answer has ended.
      def over!
        @over = true
        @waiting&.close
      end
    end
  end
end
