# frozen_string_literal: true

require_relative "../adapters"

module Heddle
  Adapters.load_library("graphql", ">= 2.6", "< 3")

  module Adapters
    # The Dataloader of graphql-ruby runs its sources in fibers that block, one after the other. Its +nonblocking: true+
    # asks the scheduler to run its loop in the middle of a fiber, which Heddle refuses, and its AsyncDataloader needs
    # the gem async. In a task each source gets a fiber of its own, and each of these fibers is resumed by a task. So
    # sources that wait do so side by side, with or without +nonblocking: true+.
    #
    # @private
    module GraphQL
      # Takes the place of methods of GraphQL::Dataloader.
      module Dataloader
        def initialize(...)
          super
          @heddle_sources = {}.compare_by_identity # the fibers of sources
          @heddle_fresh = 0 # how many of them have not begun
          @nonblocking = true if heddle_serves?
        end

        # The fiber of a source is resumed together with the others, in join_queues.
        def run_fiber(fiber) = @heddle_sources.key?(fiber) ? false : super

        private

        def heddle_serves? = Adapters.task? && !is_a?(::GraphQL::Dataloader::AsyncDataloader)

        # A fiber takes the first source when it begins, so there is one for each source.
        def spawn_source_fiber(...)
          return super unless heddle_serves?
          return if @heddle_fresh >= @pending_sources.size

          @heddle_fresh += 1
          super.tap { |fiber| @heddle_sources[fiber] = true }
        end

        def join_queues(before, paused)
          return super unless heddle_serves?

          @heddle_fresh = 0
          Heddle.each(paused.select { |fiber| @heddle_sources.key?(fiber) }) { |fiber| fiber.resume if fiber.alive? }
          @heddle_sources.delete_if { |fiber, _| !fiber.alive? }
          before.concat(paused.select(&:alive?))
          paused.clear
        end
      end

      Adapters.prepend_to("graphql", ::GraphQL::Dataloader, Dataloader)
    end
  end
end
