# frozen_string_literal: true

module Heddle
  module SolidQueue
    # What a job spawns belongs to it: the job has ended when they all have, and it fails with them.
    #
    # @private
    module JobScope
      def self.around(_job, &)
        Scheduler.current ? Heddle.run(&) : yield
      end
    end
  end
end
