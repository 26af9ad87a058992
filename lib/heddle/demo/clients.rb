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

      # How many threads or fibers to do with, once the system has refused more: fewer than it gave, to be on the safe
      # side.
      SAFE_SHARE = 0.9

      # @param style [Symbol] :blocking, :threads or :heddle
      # @param target [EmbeddedTarget, UrlTarget]
      # @param count [Integer] how many processes
      def initialize(style:, target:, count: 1)
        @style = style
        @target = target
        @count = count
        @limit = nil
        start
      end

      # Makes requests, an equal share in each process. Where the system does not carry them all at once, it is done
      # again with as many at once as it carries.
      # @return [Measurement]
      # @raise [Child::Failed] if a process cannot do it
      def measure(delay_ms:, requests:)
        shares = shares(requests)
        loop do
          @children.zip(shares) { |child, share| child.tell(delay_ms:, requests: share, limit: @limit) }
          answers = @children.map(&:answer)
          full = answers.filter_map { |answer| answer[:full] }.min
          limit = @limit if @limit && shares.max > @limit
          return Measurement.new(answers, asked: requests, limit:) unless full

          start_again((full * SAFE_SHARE).floor)
        end
      end

      # Ends the processes.
      # @return [void]
      def close
        @children.each(&:close)
      end

      private

      def start
        env = @target.is_a?(EmbeddedTarget) ? NO_PROXY : {}
        @children = Array.new(@count) { Child.new(FEATURE, MAIN, env:) }
        @children.each { |child| child.tell(style: @style, target: @target.to_h) }
        @children.each { |child| wait_ready(child) }
      end

      def wait_ready(child)
        line = child.line
        return if line == "ready"

        close
        raise Child::Failed, line
      end

      def start_again(limit)
        raise Child::Failed, "the system carries not even two requests at once (#{@style})" if limit < 1

        close
        @limit = limit
        start
      end

      def shares(requests)
        each, more = requests.divmod(@count)
        Array.new(@count) { |index| index < more ? each + 1 : each }
      end
    end
  end
end
