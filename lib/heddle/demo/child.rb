# frozen_string_literal: true

require "json"
require "rbconfig"

module Heddle
  module Demo
    # A Ruby process that the demo starts, and talks to in lines: it reads from its standard input and answers on its
    # standard output. It ends when its input does, and so never outlives the demo, not even one that was killed.
    class Child
      # What a child says when it cannot do its work.
      class Failed < StandardError; end

      LIBRARY = File.expand_path("../..", __dir__)

      # YJIT is on unless the user's environment says otherwise.
      ENVIRONMENT = { "RUBY_YJIT_ENABLE" => ENV.fetch("RUBY_YJIT_ENABLE", "1") }.freeze

      # Seconds that a child may take to end.
      PATIENCE = 2

      # @param feature [String] what to require
      # @param code [String] what to run then
      # @param bare [Boolean] without RubyGems and what RUBYOPT asks for: starts sooner
      # @param env [Hash] additions to the environment
      def initialize(feature, code, bare: false, env: {})
        options = bare ? ["--disable-gems", "-I#{LIBRARY}"] : load_path
        env = ENVIRONMENT.merge(bare ? { "RUBYOPT" => nil, "RUBYLIB" => nil } : {}, env)
        input, @input = IO.pipe
        @output, output = IO.pipe
        @pid = spawn(env, RbConfig.ruby, *options, "-r#{feature}", "-e", code, in: input, out: output)
      ensure
        input&.close
        output&.close
      end

      # @return [String] the next line that the child prints
      # @raise [Failed] if it ended instead
      def line
        @output.gets&.chomp || raise(Failed, "a process of the demo ended before its time")
      end

      # @param object [Object] sent as a line of JSON
      # @return [void]
      def tell(object)
        @input.puts(JSON.generate(object))
      end

      # @return [Hash] the next line, read as JSON
      def answer
        JSON.parse(line, symbolize_names: true)
      end

      # Ends the child, by force if need be, and waits for it.
      # @return [void]
      def close
        return unless @pid

        @input.close
        @output.close
        Process.kill(:TERM, @pid) # it may be in the midst of a measurement
        Process.kill(:KILL, @pid) unless ended?
        Process.wait(@pid) unless @ended
        @pid = nil
      end

      private

      # Whether it ends within PATIENCE. Without a thread: there may be none left to be had.
      def ended?
        deadline = now + PATIENCE
        sleep(0.005) until (@ended = Process.wait(@pid, Process::WNOHANG)) || now > deadline
        @ended
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # The same copy of Heddle as here, in the same build.
      def load_path
        [LIBRARY, *$LOAD_PATH].uniq.map { |path| "-I#{path}" }
      end
    end
  end
end
