# frozen_string_literal: true

require "etc"

module Heddle
  class Server
    # A worker as its supervisor sees it: a process, and a pipe. Through the pipe the worker says that it is ready and
    # that its loop turns.
    #
    # @private
    class Worker
      # Messages of a worker: it serves; its loop turns; it has had the requests after which it must be replaced.
      READY = "r"
      BEAT = "."
      USED_UP = "x"

      # @return [Integer]
      attr_reader :number, :pid
      # @return [Float] when it was started, by Clock
      attr_reader :since
      # @return [Float, nil] the time by which it must have ended, by Clock; nil: it was not asked to leave
      attr_reader :leaves

      # @param number [Integer]
      # @param pid [Integer]
      # @param pipe [IO]
      # @param since [Float]
      # @param leaves [Float, nil]
      # @param ready [Boolean]
      def initialize(number, pid, pipe, since: Clock.now, leaves: nil, ready: false)
        @number = number
        @pid = pid
        @pipe = pipe
        @since = since
        @leaves = leaves
        @ready = ready
        @used_up = false
        @heard = Clock.now
      end

      # @return [Worker] a worker that the program before this one has handed over
      def self.adopted(number, pid, fd, since, leaves)
        new(number, pid, IO.for_fd(fd), since:, leaves:, ready: true)
      end

      # @return [Array] the arguments for {adopted}
      def handed_over = [@number, @pid, @pipe.fileno, @since, @leaves]

      def to_io = @pipe
      def ready? = @ready
      def starting? = !@ready && !@leaves

      # @return [Boolean] whether it was not asked to leave
      def stays? = @leaves.nil?

      # Reads the messages of the worker.
      #
      # @return [Boolean] whether the worker has just become ready
      def hear
        said = @pipe.read_nonblock(4096, exception: false)
        return mute if said.nil?
        return false if said == :wait_readable

        @heard = Clock.now
        @used_up ||= said.include?(USED_UP)
        said.include?(READY) && (@ready = true)
      end

      # @param settings [Settings]
      # @return [String, nil] the limit of the settings that the worker has reached, as a text for the log
      def enough(settings)
        if @used_up then "its requests"
        elsif settings.worker_age && Clock.now - @since >= settings.worker_age then "its time"
        elsif settings.worker_memory && memory >= settings.worker_memory then "its memory"
        end
      end

      # @return [Boolean] whether the worker may still send a message
      def heard? = !@mute

      # Gives the worker its time anew. No process had any time, so the worker could not send a message.
      def excuse = @heard = Clock.now

      # @param settings [Settings]
      # @return [Float] when the worker is ended, by Clock, if it sends no message before
      def limit(settings)
        return @leaves if @leaves

        @ready ? @heard + settings.worker_timeout : @since + settings.boot_timeout
      end

      # @param signal [Symbol]
      # @param seconds [Numeric] the time that the worker has
      def leave(signal, seconds)
        @leaves = Clock.now + seconds
        tell(signal)
      end

      # @param signal [Symbol]
      def tell(signal)
        Process.kill(signal, @pid)
      rescue Errno::ESRCH
        nil
      end

      def close = @pipe.close

      PAGE_SIZE = Etc.sysconf(Etc::SC_PAGESIZE)
      private_constant :PAGE_SIZE

      private

      # @return [Integer] bytes of memory that the worker shares with no file, or 0 if it has ended
      def memory
        pages = File.read("/proc/#{@pid}/statm").split
        (Integer(pages[1]) - Integer(pages[2])) * PAGE_SIZE
      rescue SystemCallError
        0
      end

      # Notes that the pipe has ended. The supervisor notices the end of the worker when it waits for the process.
      def mute
        @mute = true
        false
      end
    end
  end
end
