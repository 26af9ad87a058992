# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # An OptionParser that takes no abbreviations, and no options of its own such as --version. (With its own
    # require_exact that of Ruby 3.3 knows neither "--name=value" nor "--[no-]name".)
    class ExactOptions < OptionParser
      # In the block of an option.
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
