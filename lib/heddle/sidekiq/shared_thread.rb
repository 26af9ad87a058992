# frozen_string_literal: true

require_relative "../internal/loop_thread"

module Heddle
  module Sidekiq # :nodoc:
    # A LoopThread that processors share. It starts with the first task and ends with the last processor. After a fork,
    # and when an exception has ended it, another one takes its place.
    #
    # Its lock is taken in Heddle.blocking: a task that waits for it and holds another lock would keep that other lock
    # while another task computes.
    #
    # @private
    class SharedThread
      # @param name [String]
      # @yieldreturn [Numeric, false, nil] the time slice of its tasks: see Heddle.run
      def initialize(name, &time_slice)
        @name = name
        @time_slice = time_slice
        @lock = Mutex.new
        @users = 0
      end

      # Counts one more processor as a user.
      # @return [void]
      def enter
        locked do
          @users = 0 unless ours?
          @owner = ::Process.pid
          @users += 1
        end
      end

      # @return [void]
      def leave
        locked do
          @users -= 1
          next if @users.positive?

          @loop&.close
          @loop = nil
        end
      end

      # @return [Boolean]
      def used? = ours? && @users.positive?

      # Starts the block as a task.
      #
      # @param component [Sidekiq::Component] makes the thread
      # @param name [String] for reports
      # @param refused [#call, nil] see LoopThread#post
      # @yieldparam loop [LoopThread]
      # @return [void]
      def post(component, name, refused: nil)
        loop = current(component)
        loop.post(name, refused:) { yield(loop) }
      rescue Error
        raise unless loop&.closed?

        retry # an exception has ended this one
      end

      # @param seconds [Numeric]
      # @return [Boolean] does a task keep the others from running for this whole time?
      def late?(seconds)
        answer = Thread::Queue.new
        locked { @loop if ours? }&.post("heddle", refused: answer.method(:close)) { answer.close } or return false
        answer.pop(timeout: seconds)
        !answer.closed?
      rescue Error
        false
      end

      private

      # A fork has none of its parent's threads.
      def ours? = @owner == ::Process.pid

      def locked(&) = Heddle.blocking { @lock.synchronize(&) }

      def current(component)
        locked do
          @loop = nil unless ours? && !@loop&.closed?
          @loop ||= LoopThread.new(time_slice: @time_slice&.call) { |work| component.safe_thread(@name, &work) }
        end
      end
    end
    private_constant :SharedThread

    # The thread in which the jobs run.
    JOBS = SharedThread.new("heddle") { Sidekiq.time_slice }
    # The thread in which Redis is asked for jobs: no job stops it.
    FETCHES = SharedThread.new("heddle/fetch")
    private_constant :JOBS, :FETCHES
  end
end
