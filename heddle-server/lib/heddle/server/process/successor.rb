# frozen_string_literal: true

require "rbconfig"
require "heddle/cli"

module Heddle
  class Server
    # Starts the program that is installed now. It takes the place of this one, in the same process.
    #
    # The program is tried first, in a process of its own. The trial does all that this program does before it serves,
    # and ends. If the trial fails, this program goes on: a gem may be missing, or the configuration or the application
    # may not load.
    #
    # @private
    class Successor
      TRIAL = "HEDDLE_SERVE_TRIAL"
      EARLY = File.expand_path("early_signals.rb", __dir__)
      # Bundler keeps the value that a variable had before Bundler set it, under a name with this prefix, and this text
      # in place of nil.
      ORIGINAL = "BUNDLER_ORIG_"
      NOTHING = "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL"
      # Variables that choose the gems and their folders. The next release may need others.
      OF_BUNDLER = %w[BUNDLE_GEMFILE BUNDLE_BIN_PATH GEM_HOME GEM_PATH].freeze
      private_constant :TRIAL, :EARLY, :ORIGINAL, :NOTHING, :OF_BUNDLER

      # @return [Boolean] whether this process is a trial
      def self.trial? = @trial ||= ENV.delete(TRIAL) == "1"

      # @param settings [Settings]
      def initialize(settings)
        @settings = settings
      end

      # @return [Integer] the process of the trial: it ends with status 0 if the program can take the place of this one
      # @raise [SystemCallError]
      def try
        Process.spawn({ **environment, TRIAL => "1", "NOTIFY_SOCKET" => nil }, *command, in: File::NULL, **place)
      end

      # Replaces this program. It does not return.
      #
      # @param more [Hash{String => String}] further variables for the environment of the program
      # @param descriptors [Hash{Integer => IO}] the descriptors that the program gets
      # @raise [SystemCallError]
      def take_over(more, descriptors)
        exec({ **environment, **early_signals, **more }, *command, **descriptors, **place)
      end

      private

      def command = [RbConfig.ruby, *ruby_options, @settings.program, *ARGV]

      # Returns the options for the folders of the server and of Heddle, if they do not come from gems.
      def ruby_options
        return [] if Gem.loaded_specs.key?("heddle-server")

        features = $LOADED_FEATURES.grep(%r{/heddle(/server)?\.rb\z})
        ($LOAD_PATH & features.map { |path| path.sub(%r{/heddle(/server)?\.rb\z}, "") }).flat_map { |lib| ["-I", lib] }
      end

      def environment
        { **before_bundler, **CLI.environment, "PWD" => @settings.directory }
      end

      def place = { chdir: @settings.directory }

      def before_bundler
        names = OF_BUNDLER.select { |name| ENV.key?("#{ORIGINAL}#{name}") }
        names.to_h { |name| [name, ENV.fetch("#{ORIGINAL}#{name}").then { |value| value == NOTHING ? nil : value }] }
      end

      def early_signals
        return {} if EARLY.match?(/\s/) # RUBYOPT cannot hold a path with spaces

        { "RUBYOPT" => "-r#{EARLY} #{ENV.fetch("RUBYOPT", "")}".rstrip }
      end
    end
  end
end
