# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # An OptionParser that accepts no abbreviations, and has no options of its own such as --version. The require_exact
    # of Ruby 3.3 cannot be used: with it "--name=value" and "--[no-]name" are unknown.
    class ExactOptions < OptionParser
      # Refuses a value in the block of an option.
      #
      # @raise [InvalidArgument] whose message has the option as it was typed
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
