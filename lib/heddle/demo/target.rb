# frozen_string_literal: true

require_relative "embedded_target"
require_relative "url_target"

module Heddle
  module Demo
    # What the requests go to: the demo's own server, or the user's.
    module Target
      # Makes a target of what its #to_h said in another process.
      # @param data [Hash]
      # @return [EmbeddedTarget, UrlTarget]
      def self.from(data)
        return EmbeddedTarget.new(port: data[:port]) if data[:kind] == "embedded"

        UrlTarget.new(url: data[:url], body: data[:body]&.unpack1("m0"))
      end
    end
  end
end
