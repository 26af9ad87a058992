# frozen_string_literal: true

module Heddle
  module CLI
    # The command line cannot be followed: said in one line, exit status 2.
    class UsageError < StandardError; end
  end
end
