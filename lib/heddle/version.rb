# frozen_string_literal: true

# See heddle.rb.
module Heddle
  # The version of this gem.
  VERSION = "0.1.0"
end
