# frozen_string_literal: true

require_relative "../pool_thread"

module Heddle
  module CoreExt
    # A thread of the pool waits for the disk.
    module Fsync
      # @private
      def fsync
        return __heddle_fsync unless Scheduler.current

        PoolThread.run("the disk of", self) { __heddle_fsync }
      end

      # @private
      def fdatasync
        return __heddle_fdatasync unless Scheduler.current

        PoolThread.run("the disk of", self) { __heddle_fdatasync }
      end
    end
  end
end
