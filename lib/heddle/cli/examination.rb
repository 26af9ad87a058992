# frozen_string_literal: true

require_relative "../version"
require_relative "advice"
require_relative "kernel_facts"
require_relative "limits"
require_relative "open_files"
require_relative "ruby_facts"

module Heddle
  module CLI
    # Everything that `heddle doctor` finds out. It works where Heddle itself cannot be loaded, and says why.
    class Examination
      # @return [Hash]
      attr_reader :facts

      def initialize
        limits = Limits.to_h
        OpenFiles.raise_limit
        @loaded = false
        @failure = load_failure
        @facts = {
          heddle: VERSION, ruby: RubyFacts.to_h, backend: backend, backends: backends, wanted: wanted,
          failure: @failure, kernel: KernelFacts.to_h, hooks: RubyFacts.hooks(@loaded ? Scheduler : nil),
          patches: patches, limits: limits.merge(open_files_raised_to: OpenFiles.limit)
        }
        @facts[:advice] = Advice.new(@facts).to_a
      end

      # @return [Boolean] whether Heddle can run here
      def healthy?
        @failure.nil?
      end

      private

      # @return [String, nil] why Heddle cannot be loaded
      def load_failure
        require "heddle"
        @loaded = true
        nil
      rescue LoadError, SyntaxError, ArgumentError => e # (the last one: HEDDLE_WITHOUT)
        e.message.lines.first.chomp
      end

      def wanted
        name = ENV.fetch("HEDDLE_BACKEND", "")
        name unless name.empty?
      end

      # The names, by the state of the patch.
      def patches
        return {} unless @loaded

        Heddle.patches.group_by(&:state).transform_values { |patches| patches.map(&:name) }
      end

      def backends
        @loaded ? Heddle.backends : []
      end

      # The one that Heddle.run would take.
      def backend
        return unless @loaded

        scheduler = Scheduler.new
        scheduler.backend
      rescue Heddle::Error, ArgumentError => e
        @failure = e.message
        nil
      ensure
        scheduler&.close
      end
    end
  end
end
