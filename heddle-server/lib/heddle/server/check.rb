# frozen_string_literal: true

module Heddle
  class Server
    # Arguments that several methods check in the same way. An ArgumentError names the argument.
    #
    # @private
    module Check
      OWN = "#{File.dirname(__dir__)}/".freeze
      # Times in seconds that Ruby can wait.
      SECONDS = 1e-9..1e9
      # The number of characters of a wrong argument that its error shows.
      SHOWN = 80
      private_constant :OWN, :SECONDS, :SHOWN

      class << self
        # Raises an error whose backtrace begins where the program has called the server. The backtrace consists of
        # Strings: else error_highlight would show the line of the server that raises.
        # @raise [ArgumentError]
        def refuse(message)
          frames = caller.reject { |line| line.start_with?(OWN) }
          raise ArgumentError, message, frames.empty? ? caller : frames
        end

        # @return [String] a wrong argument as its error shows it: in one line, and not too long
        def shown(value)
          text = value.inspect.scrub.gsub(/[[:cntrl:]]/) { |character| character.dump[1..-2] }
          text.size > SHOWN ? "#{text[0, SHOWN]}..." : text
        end

        # @raise [ArgumentError]
        def positive_integer(name, value)
          return if value.is_a?(Integer) && value.positive?

          refuse("#{name}: must be a positive Integer, not #{shown(value)}")
        end

        # Checks a time that is longer than 0, and finite.
        # @raise [ArgumentError]
        def seconds(name, value)
          right = value.is_a?(Numeric) && value.real? && value.positive?
          refuse("#{name}: must be a positive number of seconds, not #{shown(value)}") unless right
          return if SECONDS.cover?(value)

          refuse("#{name}: must be from #{SECONDS.begin} to #{SECONDS.end} seconds, not #{shown(value)}")
        end

        # Checks a time limit. nil: no limit; 0 or less: the time is over.
        # @raise [ArgumentError]
        def time(name, value)
          return if value.nil? || (value.is_a?(Numeric) && value.real? && (value <=> 0))

          refuse("#{name}: must be a number of seconds or nil, not #{shown(value)}")
        end

        # @raise [ArgumentError]
        def responds(name, value, method)
          return if value.respond_to?(method)

          refuse("#{name}: must have the method #{method}, unlike #{shown(value)}")
        end
      end
    end
  end
end
