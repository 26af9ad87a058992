# frozen_string_literal: true

require "net/http"
require_relative "server"

module Heddle
  module Demo
    # Requests to the demo's own server, and what is right about the answers to them.
    class EmbeddedTarget
      HOST = "127.0.0.1"

      # @param port [Integer]
      def initialize(port:)
        @port = port
      end

      # @return [Hash] what Target.from makes an equal target of
      def to_h
        { kind: "embedded", port: @port }
      end

      # The request that is measured: plain Net::HTTP, a new connection each time. Only repeating a GET that failed is
      # switched off: errors would be hidden.
      # @return [Net::HTTPResponse]
      def get(delay_ms, number)
        Net::HTTP.start(HOST, @port) do |http|
          http.max_retries = 0
          http.get(Server.path(delay_ms, number))
        end
      end

      # @return [String, nil] what is wrong with an answer
      def mistake(response, delay_ms, number)
        return "status #{response.code}" unless response.code == "200"

        "wrong body" unless response.body == Server.body(delay_ms, number)
      end
    end
  end
end
