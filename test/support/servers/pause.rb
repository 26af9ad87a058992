# frozen_string_literal: true

module TestSupport
  module Servers
    # Processes that stand still while a block runs. Bytes that are sent to them meanwhile stay in the kernel.
    class Pause
      # In seconds. Who waits for them and keeps the block from going on would wait for ever.
      LIMIT = 30

      # @param pids [Array<Integer>] what they have started stands still, too
      # @raise [RuntimeError] the block has not ended within LIMIT
      def self.during(*pids, &) = new(pids).during(&)

      # @param ports [Array<Integer>] of servers on 127.0.0.1
      # @return [Integer] the connections to these ports whose server has not yet read what it was sent
      def self.unread(*ports)
        File.readlines("/proc/net/tcp").drop(1).count do |line|
          _, local, _, state, queues = line.split
          state == "01" && ports.include?(local[/\h+\z/].hex) && queues[/\h+\z/].hex.positive?
        end
      end

      # Of Linux: how many bytes are in a pipe.
      FIONREAD = 0x541B
      private_constant :FIONREAD

      # Processes that are asked through their standard input, a pipe.
      Children = Struct.new(:pids) do
        def paused(&) = Pause.during(*pids, &)

        def unread
          pids.count { |pid| File.open("/proc/#{pid}/fd/0", IO::RDONLY | IO::NONBLOCK) { |pipe| held(pipe).positive? } }
        end

        def held(pipe)
          [0].pack("i").tap { |bytes| pipe.ioctl(FIONREAD, bytes) }.unpack1("i")
        end
      end

      def initialize(pids)
        @given = pids
        @pids = []
      end

      # A thread of its own stops them and lets them go on: whatever ends the block, and also if the block never ends.
      def during
        still = Thread::Queue.new
        over = Thread::Queue.new
        watch = Thread.new { stand_still(still, over) }
        still.pop
        value = yield
        raise "the others have not run for #{LIMIT} s" if @late

        value
      ensure
        over << true
        watch.join
      end

      private

      def stand_still(still, over)
        stop
        still << true
        @late = over.pop(timeout: LIMIT).nil?
      ensure
        still.close
        @pids.each { |pid| signal(:CONT, pid) }
      end

      # A child may have been started before its parent stood still.
      def stop
        until (running = with_children - @pids).empty?
          running.each { |pid| signal(:STOP, pid) }
          @pids.concat(running)
          sleep(0.001) until running.all? { |pid| stopped?(pid) }
        end
      end

      def signal(name, pid)
        Process.kill(name, pid)
      rescue Errno::ESRCH
        nil # it has ended
      end

      def with_children
        parents = Dir.glob("/proc/[0-9]*/stat").filter_map { |file| stat(file) }.to_h
        found = @given.dup
        found.each { |pid| found.concat(parents.select { |_, parent| parent == pid }.keys) }
      end

      # @return [Array(Integer, Integer), nil] a process and its parent
      def stat(file)
        text = File.read(file)
        [text.to_i, text[/.*\) \S (\d+)/m, 1].to_i]
      rescue SystemCallError
        nil # it has ended
      end

      # Every thread of it: one that had begun with something finishes that first.
      def stopped?(pid)
        Dir.glob("/proc/#{pid}/task/*/stat").all? { |file| File.read(file)[/.*\) (\S)/m, 1].match?(/[TtZX]/) }
      rescue SystemCallError
        true
      end
    end
  end
end
