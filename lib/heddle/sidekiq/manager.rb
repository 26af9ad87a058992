# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Takes the place of a method of Sidekiq::Manager. While it goes through its processors to start them, the first of
    # them run jobs. One whose job fails puts another processor in its own place, which Ruby refuses to add to a Set
    # that somebody goes through: the place would be lost. With the manager's lock this waits for the end of the start.
    #
    # @private
    module Manager
      def start = @plock.synchronize { super }
    end
  end
end
