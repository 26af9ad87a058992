# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # The options of a command of `heddle`: Ruby's OptionParser, but it accepts no abbreviations, and has no options of
    # its own such as --version. `require "heddle/cli/options"` loads it. See {CLI}.
    #
    # The require_exact of Ruby 3.3 cannot be used: with it "--name=value" and "--[no-]name" are unknown.
    class Options < OptionParser
      # Refuses a value in the block of an option.
      #
      # @param value [Object] the value of the option
      # @param reason [String]
      # @return [void]
      # @raise [OptionParser::InvalidArgument] whose message has the option as it was typed
      def self.refuse(value, reason)
        raise InvalidArgument.new(value.to_s, "(#{reason})")
      end

      private

      def add_officious = nil

      def complete(kind, name, *)
        [search(kind, name) || raise(InvalidOption, name), name]
      end
    end
  end
end
