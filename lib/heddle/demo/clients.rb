# frozen_string_literal: true

require_relative "child"
require_relative "measurement"

module Heddle
  module Demo
    # The client processes that make requests in one style. The styles do not share a process, so that what one leaves
    # behind (stacks, a larger heap) does not count for or against another.
    class Clients
      FEATURE = "heddle/demo/client"
      MAIN = "Heddle::Demo::Client.main"

      # Without a proxy that is set in the environment: Net::HTTP would ask it for the demo's own server as well.
      NO_PROXY = %w[http_proxy HTTP_PROXY].to_h { |name| [name, nil] }.freeze

      # @param style [Symbol] :blocking, :threads or :heddle
      # @param target [EmbeddedTarget, UrlTarget]
      # @param count [Integer] how many processes
      def initialize(style:, target:, count: 1)
        env = target.is_a?(EmbeddedTarget) ? NO_PROXY : {}
        @children = Array.new(count) { Child.new(FEATURE, MAIN, env:) }
        @children.each { |child| child.tell(style:, target: target.to_h) }
      end

      # Makes requests, an equal share in each process.
      # @return [Measurement]
      # @raise [Child::Failed] if a process cannot do it
      def measure(delay_ms:, requests:)
        wait_ready
        @children.zip(shares(requests)) { |child, share| child.tell(delay_ms:, requests: share) }
        Measurement.new(@children.map(&:answer), asked: requests)
      end

      # Ends the processes.
      # @return [void]
      def close
        @children.each(&:close)
      end

      private

      def wait_ready
        @wait_ready ||= @children.each do |child|
          line = child.line
          raise Child::Failed, line unless line == "ready"
        end
      end

      def shares(requests)
        each, more = requests.divmod(@children.size)
        Array.new(@children.size) { |index| index < more ? each + 1 : each }
      end
    end
  end
end
