# frozen_string_literal: true

module Heddle
  module Rack
    # Runs a body in a Heddle.run of its own, because the server calls it after the application has returned.
    #
    # @private
    module Body
      # @param body [Object] of Rack
      # @return [Object] the body itself, if the server sends it without calling it: an Array, a file
      def self.in_run(body)
        return body if body.is_a?(Array) || body.respond_to?(:to_path)
        return body.respond_to?(:to_ary) ? Listed.new(body) : Parts.new(body) if body.respond_to?(:each)

        body.respond_to?(:call) ? Streamed.new(body) : body
      end

      # @param body [#each, #call]
      def initialize(body)
        @body = body
      end

      # @return [void]
      def close
        @body.close if @body.respond_to?(:close)
      end

      # A body that passes its parts to the server.
      class Parts
        include Body

        # Yields the parts. The server may leave its block by break, which cancels the tasks of the body. The block is
        # called in the fiber of the run. There Ruby refuses a break, but a throw can leave the run.
        #
        # @yieldparam part [String]
        # @return [void]
        def each(&block)
          return enumerator unless block

          catch do |left|
            Heddle.run do
              broken = hand_over(block)
              throw(left, broken.exit_value) if broken
            end
          end
        end

        # Enumerator#next requests the parts in another fiber, too.
        #
        # @return [Enumerator]
        def to_enum(method = :each, *) = method == :each ? enumerator : super
        alias enum_for to_enum

        private

        # @return [LocalJumpError, nil] the error of a break
        def hand_over(block)
          catch do |left|
            @body.each do |part|
              block.call(part)
            rescue LocalJumpError => e
              e.reason == :break ? throw(left, e) : raise
            end
            nil
          end
        end

        # Makes all parts before Enumerator#next gets the first one: it has a fiber of its own, and only this fiber can
        # pass a part to it.
        def enumerator
          home = Fiber.current
          Enumerator.new do |parts|
            next each { |part| parts << part } if Fiber.current.equal?(home)

            made = []
            each { |part| made << part }
            made.each { |part| parts << part }
          end
        end
      end

      # A body that may be an Array: the bodies of Rails return nil if they are not.
      class Listed < Parts
        # @return [Array<String>, nil]
        def to_ary = @body.to_ary
      end

      # A body that writes to the stream of the server.
      class Streamed
        include Body

        # @param stream [#read, #write]
        # @return [void]
        def call(stream)
          Heddle.run { @body.call(stream) }
          nil
        end
      end
    end
    private_constant :Body
  end
end
