# frozen_string_literal: true

require "optparse"

module Heddle
  module CLI
    # An OptionParser that takes no abbreviations.
    class ExactOptions < OptionParser
      def initialize(...)
        super
        self.require_exact = true
      end

      # (That of Ruby 3.3 knows no option "--name=value" then, so it gets two arguments.)
      #
      # @param args [Array<String>]
      # @return [Array<String>] what is no option
      def parse(args)
        super(args.flat_map { |arg| arg.start_with?("--") ? arg.split("=", 2) : [arg] })
      end
    end
  end
end
