# frozen_string_literal: true

require "rbconfig"
require_relative "../cli/run/deep_stacks"

module Heddle
  class Server
    # The program that is installed now, which is to take the place of this one, in the same process.
    #
    # It is tried first, in a process of its own: that does all that this program does before it serves, and ends. If it
    # cannot (a gem is missing, the configuration or the application does not load), this program goes on.
    #
    # @private
    class Successor
      TRIAL = "HEDDLE_SERVE_TRIAL"
      EARLY = File.expand_path("early_signals.rb", __dir__)
      # Bundler keeps here what a variable was before it has set it, and that for nil.
      ORIGINAL = "BUNDLER_ORIG_"
      NOTHING = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"
      # Which gems, and of which folder: those of the next release may be others.
      OF_BUNDLER = %w[BUNDLE_GEMFILE BUNDLE_BIN_PATH GEM_HOME GEM_PATH].freeze
      private_constant :TRIAL, :EARLY, :ORIGINAL, :NOTHING, :OF_BUNDLER

      # @return [Boolean] whether this process is a trial
      def self.trial? = @trial ||= ENV.delete(TRIAL) == "1"

      # @param settings [Settings]
      def initialize(settings)
        @settings = settings
      end

      # @return [Integer] the process that tries it: it ends with status 0 if it can take the place of this one
      # @raise [SystemCallError]
      def try
        Process.spawn({ **environment, TRIAL => "1", "NOTIFY_SOCKET" => nil }, *command, in: File::NULL, **place)
      end

      # Does not return.
      #
      # @param more [Hash{String => String}] for its environment
      # @param descriptors [Hash{Integer => IO}] that it gets
      # @raise [SystemCallError]
      def take_over(more, descriptors)
        exec({ **environment, **early_signals, **more }, *command, **descriptors, **place)
      end

      private

      def command = [RbConfig.ruby, *ruby_options, @settings.program, *ARGV]

      # Which Heddle it is, where it does not come from a gem.
      def ruby_options = $LOAD_PATH.include?(lib = File.expand_path("../..", __dir__)) ? ["-I", lib] : []

      def environment
        { **before_bundler, **CLI::DeepStacks.environment, "PWD" => @settings.directory }
      end

      def place = { chdir: @settings.directory }

      def before_bundler
        names = OF_BUNDLER.select { |name| ENV.key?("#{ORIGINAL}#{name}") }
        names.to_h { |name| [name, ENV.fetch("#{ORIGINAL}#{name}").then { |value| value == NOTHING ? nil : value }] }
      end

      def early_signals
        return {} if EARLY.match?(/\s/) # (RUBYOPT has no way to say that)

        { "RUBYOPT" => "-r#{EARLY} #{ENV.fetch("RUBYOPT", "")}".rstrip }
      end
    end
  end
end
