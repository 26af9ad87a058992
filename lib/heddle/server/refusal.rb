# frozen_string_literal: true

require "protocol/http/status"
require_relative "http_date"

module Heddle
  class Server
    # Ends a request with this status, and the connection with it.
    #
    # @private
    class Refusal < StandardError
      # @return [Integer]
      attr_reader :status

      # @param status [Integer]
      def initialize(status)
        @status = status
        super(reason)
      end

      # @return [String]
      def reason = ::Protocol::HTTP::Status.description(@status)

      # @return [String] as it is sent
      def answer
        "HTTP/1.1 #{@status} #{reason}\r\n#{HTTPDate.line}content-type: text/plain\r\n" \
          "content-length: #{reason.bytesize}\r\n#{"retry-after: 1\r\n" if @status == 503}connection: close\r\n\r\n" \
          "#{reason}"
      end
    end
  end
end
