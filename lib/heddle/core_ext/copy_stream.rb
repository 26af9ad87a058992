# frozen_string_literal: true

module Heddle
  module CoreExt
    # Ruby 3.4+ has a worker do the whole of IO.copy_stream, and wait there for sockets and pipes where neither a close
    # nor a cancel reaches it. With one of these the fiber copies by itself, as Ruby does for objects that are no IO.
    module CopyStream
      # What Ruby reads from.
      class Source
        def initialize(io)
          @io = io
        end

        def readpartial(...) = @io.readpartial(...)
      end
      private_constant :Source

      # @private
      def copy_stream(source, destination, length = nil, offset = nil)
        return super unless Fiber.current_scheduler.is_a?(Scheduler) && !offset && source.is_a?(IO) &&
                            (CopyStream.may_wait?(source) || CopyStream.may_wait?(destination))

        super(Source.new(source), destination, length).tap { destination.flush if destination.is_a?(IO) }
      end

      # @private
      def self.may_wait?(stream) = stream.is_a?(IO) && !stream.stat.file?
    end
  end
end

IO.singleton_class.prepend(Heddle::CoreExt::CopyStream)
