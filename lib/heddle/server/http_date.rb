# frozen_string_literal: true

require "time"

module Heddle
  class Server
    # The line of the header Date, made once a second.
    #
    # @private
    module HTTPDate
      @second = @text = nil

      # @return [String]
      def self.line
        second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
        return @text if second == @second

        @text = "date: #{Time.at(second).httpdate}\r\n".freeze
        @second = second
        @text
      end
    end
  end
end
