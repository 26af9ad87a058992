# frozen_string_literal: true

require "json"
require_relative "styles"
require_relative "target"

module Heddle
  module Demo
    # The process that makes requests in one style and takes the time.
    class Client
      # How many different errors are told apart.
      KINDS_MAX = 20

      # The main program of a client's process. Reads orders such as {"delay_ms":100,"requests":1000}, answers each with
      # what #measure returns.
      # @return [void]
      def self.main
        trap("INT", "IGNORE") # Ctrl-C reaches the whole process group; the starter decides when to stop
        $stdout.sync = true
        setting = JSON.parse($stdin.gets, symbolize_names: true)
        client = new(setting[:style], Target.from(setting[:target]))
        Process.warmup # as a program does when it has loaded what it needs
        $stdout.puts("ready")
        while (order = $stdin.gets)
          $stdout.puts(JSON.generate(client.measure(**JSON.parse(order, symbolize_names: true))))
        end
      rescue LoadError => e
        $stdout.puts(e.message)
      rescue Styles::Full => e
        # No way to go on in this process: when Ruby 3.3 cannot make a thread, no other thread ever runs again.
        $stdout.write_nonblock("#{JSON.generate({ full: e.carried })}\n")
        exit!(1)
      end

      # @param style [String] "blocking", "threads" or "heddle"
      # @param target [EmbeddedTarget, UrlTarget]
      def initialize(style, target)
        require "heddle" if style == "heddle"
        @style = style.to_sym
        @target = target
        @errors = Hash.new(0)
        @lock = Mutex.new
      end

      # Makes requests and checks every answer.
      # @return [Hash] when it started and ended, how many requests were made, how many went wrong and how
      # @raise [Styles::Full]
      def measure(delay_ms:, requests:, limit: nil)
        @errors.clear
        styles = Styles.new(limit:)
        GC.start
        started = now
        styles.public_send(@style, requests) { |number| request(delay_ms, number) }
        ended = now
        { started:, ended:, made: styles.made, errors: @errors, backend: @backend }
      end

      private

      def request(delay_ms, number)
        mistake = @target.mistake(@target.get(delay_ms, number), delay_ms, number)
        count_error(mistake) if mistake
        @backend ||= Fiber.current_scheduler&.backend if @style == :heddle
      rescue StandardError => e
        count_error("#{e.class}: #{e.message.scrub}")
      end

      def count_error(kind)
        @lock.synchronize do
          kind = "others" if @errors.size >= KINDS_MAX && !@errors.key?(kind)
          @errors[kind] += 1
        end
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
