# frozen_string_literal: true

module Heddle
  # Reads the time of the machine, which nobody sets. It is in C, so that a test may stop Ruby's clocks.
  #
  #   Clock.now # => 81204.3, in seconds
  module Clock
  end
  private_constant :Clock
end
