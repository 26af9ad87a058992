# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("async", ">= 2.6", "< 3")

  module Adapters
    # The gem async has a scheduler of its own, and Heddle has one: both cannot run on the same thread. In a task Async
    # { } and Sync { } run their block on another thread, under async's scheduler, and the task waits for it. As outside
    # of a reactor, Async { } returns the task when everything that was started in the block has ended.
    #
    # The block does not run as a task of Heddle. The objects that it opens (Async::HTTP::Internet) belong to its
    # reactor: make and close them in the block. A cancel or a timeout raises an exception in its thread, which ends the
    # reactor with all its tasks.
    #
    # @private
    module Async
      # Takes the place of Kernel#Async and Kernel#Sync.
      module Blocks
        # rubocop:disable Naming/MethodName -- they are async's
        def Async(...) = Adapters.task? ? Heddle.offload(lasting: true) { super } : super

        def Sync(...) = Adapters.task? ? Heddle.offload(lasting: true) { super } : super
        # rubocop:enable Naming/MethodName
      end

      Adapters.prepend_to("async", ::Kernel, Blocks)
    end
  end
end
