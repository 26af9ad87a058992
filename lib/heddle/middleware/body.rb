# frozen_string_literal: true

module Heddle
  class Middleware
    # The body of an answer, which the server uses when Middleware#call has returned: its code has a run of its own.
    # Everything else that it responds to is as before.
    #
    # @private
    class Body
      # @param body [#each, #call] of a Rack answer
      # @return [Body, Object] the body itself if there is nothing in it to run: an Array, or a file
      def self.of(body)
        return body if body.respond_to?(:to_ary) || body.respond_to?(:to_path)

        (body.respond_to?(:each) ? Iterated : Streamed).new(body)
      end

      def initialize(body)
        @body = body
      end

      private

      def respond_to_missing?(...) = @body.respond_to?(...)

      def method_missing(...) = @body.__send__(...)

      # The server asks for one part after the other.
      class Iterated < Body
        def each(&block)
          block ? Heddle.run { @body.each(&block) } : to_enum
        end
      end

      # It writes to the connection itself.
      class Streamed < Body
        def call(stream) = Heddle.run { @body.call(stream) }
      end
      private_constant :Iterated, :Streamed
    end
    private_constant :Body
  end
end
