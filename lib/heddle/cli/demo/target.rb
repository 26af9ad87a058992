# frozen_string_literal: true

require "net/http"
require "uri"
require_relative "server"

module Heddle
  module CLI
    class Demo
      # Says where the requests go, and which answers are right. The demo's own server must send the body that belongs
      # to the request. A server of the user must send a status of success. If it sends the same body twice when it is
      # asked in advance, it must send this body every time.
      class Target
        # @param port [Integer] of the demo's own server
        # @return [Target]
        def self.own(port) = new("http://127.0.0.1:#{port}/", own: true)

        # @param url [String]
        def initialize(url, own: false)
          @uri = URI(url)
          @own = own
          @proxy = own ? nil : :ENV
          @options = @uri.scheme == "https" ? { use_ssl: true } : {}
        end

        # Finds out which body to expect.
        # @return [self]
        def look
          first, second = Array.new(2) { get.body.b }
          @body = first if first == second
          self
        rescue StandardError
          self # the measurement will meet the same error, count it and show it
        end

        # Makes the request that is measured: plain Net::HTTP, a new connection each time. Net::HTTP would repeat a GET
        # that failed, and accept half an answer as a whole one: errors would be hidden.
        # @return [Net::HTTPResponse]
        def get(delay_ms = nil, number = nil)
          Net::HTTP.start(@uri.hostname, @uri.port, @proxy, **@options) do |http|
            http.max_retries = 0
            http.ignore_eof = false
            http.get(@own ? Server.path(delay_ms, number) : @uri.request_uri)
          end
        end

        # @return [String, nil] what is wrong with an answer
        def mistake(response, delay_ms, number)
          return "status #{response.code}" unless response.is_a?(Net::HTTPSuccess)

          body = @own ? Server.body(delay_ms, number) : @body
          "wrong body" if body && response.body.b != body
        end
      end
    end
  end
end
