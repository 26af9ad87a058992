# frozen_string_literal: true

module TestSupport
  # Warnings that name a file of this project, and experimental ones, count as failures: an error while files
  # are loaded, a failed test later (an exception raised in the middle of a hook would hide its own cause).
  module Warnings
    ROOT = "#{File.expand_path("../..", __dir__)}/".freeze

    @seen = []
    @loading = true

    class << self
      # The warnings since the last call.
      def clear
        @loading = false
        @seen.slice!(0..)
      end

      # Called for each warning that counts.
      def report(message)
        raise "warning: #{message}" if @loading

        @seen << message
      end
    end

    # Prepended to the singleton of Warning.
    module Hook
      def warn(message, category: nil, **)
        Warnings.report(message) if message.start_with?(ROOT) || category == :experimental
        super
      end
    end

    ::Warning.singleton_class.prepend(Hook)
  end
end
