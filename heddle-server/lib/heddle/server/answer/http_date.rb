# frozen_string_literal: true

require "time"

module Heddle
  class Server
    # Makes the header Date, once a second.
    #
    # @private
    module HTTPDate
      @second = @value = @line = nil

      class << self
        # @return [String] the line of the header in HTTP/1
        def line
          renew
          @line
        end

        # @return [String]
        def value
          renew
          @value
        end

        private

        def renew
          second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
          return if second == @second

          @value = Time.at(second).httpdate.freeze
          @line = "date: #{@value}\r\n".freeze
          @second = second
        end
      end
    end
  end
end
