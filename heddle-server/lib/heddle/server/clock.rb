# frozen_string_literal: true

module Heddle
  class Server
    # Reads the time of the machine, which nobody sets.
    #
    # @private
    module Clock
      # @return [Float] seconds
      def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_constant :Clock
  end
end
