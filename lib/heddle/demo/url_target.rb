# frozen_string_literal: true

require "net/http"
require "uri"

module Heddle
  module Demo
    # Requests to a server of the user's. Every answer must have a status of success; if the server gives the same body
    # twice when asked in advance, every body must be that one.
    class UrlTarget
      # @param url [String]
      # @param body [String, nil] the body to expect, nil for any
      def initialize(url:, body: nil)
        @url = url
        uri = URI(url)
        @host = uri.hostname
        @port = uri.port
        @path = uri.request_uri
        @tls = uri.scheme == "https"
        @body = body&.b
      end

      # @return [UrlTarget] one that knows what body to expect
      def with_expected_body
        first, second = Array.new(2) { get.body }
        UrlTarget.new(url: @url, body: (first if first == second))
      rescue StandardError
        self # the measurement will meet the same error, count it and show it
      end

      # @return [Hash] what Target.from makes an equal target of
      def to_h
        { kind: "url", url: @url, body: @body && [@body].pack("m0") }
      end

      # @return [String] what is checked, in words
      def rule
        @body ? "status of success, the same body each time" : "status of success (the body varies)"
      end

      # The request that is measured: plain Net::HTTP, a new connection each time.
      # @return [Net::HTTPResponse]
      def get(_delay_ms = nil, _number = nil)
        return Net::HTTP.start(@host, @port, use_ssl: true) { |http| strict(http) } if @tls

        Net::HTTP.start(@host, @port) { |http| strict(http) }
      end

      # @return [String, nil] what is wrong with an answer
      def mistake(response, _delay_ms, _number)
        return "status #{response.code}" unless response.is_a?(Net::HTTPSuccess)

        "wrong body" if @body && response.body.b != @body
      end

      private

      # By itself Net::HTTP repeats a GET that failed, and takes half an answer for a whole one: errors would be hidden.
      def strict(http)
        http.max_retries = 0
        http.ignore_eof = false
        http.get(@path)
      end
    end
  end
end
