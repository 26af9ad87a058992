# frozen_string_literal: true

require "etc"

module Heddle
  module Demo
    # What the figures were measured on, in words.
    module System
      module_function

      # @return [String]
      def ruby
        "Ruby #{RUBY_VERSION} #{yjit? ? "with" : "without"} YJIT"
      end

      # @return [String]
      def machine
        uname = Etc.uname
        "#{Etc.nprocessors} cores, #{uname[:sysname]} #{uname[:release]}"
      end

      # Whether the demo's processes run with YJIT: they are started so, where this Ruby has it.
      # @return [Boolean]
      def yjit?
        RubyVM.const_defined?(:YJIT) && Child::ENVIRONMENT["RUBY_YJIT_ENABLE"] == "1"
      end
    end
  end
end
