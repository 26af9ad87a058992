# frozen_string_literal: true

require "protocol/http/status"
require_relative "answer/http_date"

module Heddle
  class Server
    # Ends a request with a status, and with HTTP/1 also its connection.
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

      # @return [Array<Array(String, String)>] the head of the answer as HTTP/2 sends it, without the text
      def fields
        fields = [[":status", @status.to_s], ["date", HTTPDate.value], ["content-type", "text/plain"]]
        fields << %w[retry-after 1] if @status == 503
        fields
      end

      # @param head [Boolean] whether the request has the method HEAD
      # @return [String] the answer as HTTP/1 sends it
      def answer(head: false)
        "HTTP/1.1 #{@status} #{reason}\r\n#{HTTPDate.line}content-type: text/plain\r\n" \
          "content-length: #{reason.bytesize}\r\n#{"retry-after: 1\r\n" if @status == 503}connection: close\r\n\r\n" \
          "#{reason unless head}"
      end
    end
  end
end
