# frozen_string_literal: true

module Heddle
  module CoreExt
    # Opens a FIFO that is the input or output of a new program (<tt>spawn("cat", in: path)</tt>). Ruby would open it in
    # the parent, and the thread would wait for the other end. A thread of the pool opens it here, and Ruby gets the IO.
    module FifoRedirection
      # For Kernel and Process.
      module Spawn
        ruby2_keywords def spawn(*arguments)
          FifoRedirection.open(arguments) { |opened| return __heddle_spawn(*opened) }
          __heddle_spawn(*arguments)
        end
      end

      # For Kernel.
      module System
        ruby2_keywords def system(*arguments)
          FifoRedirection.open(arguments) { |opened| return __heddle_system(*opened) }
          __heddle_system(*arguments)
        end
      end

      # For IO.
      module Popen
        ruby2_keywords def popen(*arguments, &block)
          io = FifoRedirection.open(arguments) { |opened| __heddle_popen(*opened) }
          return __heddle_popen(*arguments, &block) unless io
          return io unless block

          begin
            yield(io) # the FIFO is no longer open in this process: its reader may wait for the end
          ensure
            io.close
          end
        end
      end

      # Yields the arguments, in which FIFOs have been opened.
      def self.open(arguments)
        options = arguments.last
        return unless options.is_a?(Hash) && Scheduler.current

        fifos = options.select { |key, target| key != :chdir && fifo?(target) }
        return if fifos.empty?

        ios = {}
        begin
          fifos.each { |key, target| ios[key] = open_fifo(key, *target) }
          yield([*arguments[...-1], options.merge(ios)])
        ensure
          ios.each_value(&:close)
        end
      end

      def self.fifo?(target)
        path = target.is_a?(Array) ? target.first : target
        path.is_a?(String) && Opening.kind_of(path) == :fifo
      end
      private_class_method :fifo?

      def self.open_fifo(key, path, mode = nil, *)
        keys = key.is_a?(Array) ? key : [key]
        output = keys.all? { |one| [:out, :err, 1, 2, $stdout, $stderr].include?(one) }
        File.new(path, mode || (output ? "w" : "r"))
      end
      private_class_method :open_fifo
    end
  end
end
