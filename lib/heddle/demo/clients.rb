# frozen_string_literal: true

require_relative "child"
require_relative "measurement"

module Heddle
  module Demo
    # The client processes of one measurement. Each measurement has fresh ones: all of them start cold.
    class Clients
      FEATURE = "heddle/demo/client"
      MAIN = "Heddle::Demo::Client.main"

      # Without a proxy that is set in the environment: Net::HTTP would ask it for the demo's own server as well.
      NO_PROXY = %w[http_proxy HTTP_PROXY].to_h { |name| [name, nil] }.freeze

      # Starts clients, yields them when they are ready, ends them.
      # @return [Object] what the block returned
      # @raise [Child::Failed] if a client cannot start
      def self.open(**)
        clients = new(**)
        clients.wait_ready
        yield clients
      ensure
        clients&.close
      end

      # @param style [Symbol] :blocking, :threads or :heddle
      # @param target [EmbeddedTarget, UrlTarget]
      # @param count [Integer] how many processes
      def initialize(style:, target:, count: 1)
        env = target.is_a?(EmbeddedTarget) ? NO_PROXY : {}
        @children = Array.new(count) { Child.new(FEATURE, MAIN, env:) }
        @children.each { |child| child.tell(style:, target: target.to_h) }
      end

      # @return [void]
      def wait_ready
        @children.each do |child|
          line = child.line
          raise Child::Failed, line unless line == "ready"
        end
      end

      # Makes requests, an equal share in each process.
      # @return [Measurement]
      def measure(delay_ms:, requests:)
        @children.zip(shares(requests)) { |child, share| child.tell(delay_ms:, requests: share) }
        Measurement.new(@children.map(&:answer), asked: requests)
      end

      # Ends the processes.
      # @return [void]
      def close
        @children.each(&:close)
      end

      private

      def shares(requests)
        each, more = requests.divmod(@children.size)
        Array.new(@children.size) { |index| index < more ? each + 1 : each }
      end
    end
  end
end
