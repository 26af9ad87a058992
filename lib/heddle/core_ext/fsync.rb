# frozen_string_literal: true

module Heddle
  module CoreExt
    # A thread of the pool waits for the disk.
    module Fsync
      def fsync = Scheduler.current ? Fsync.run(self) { __heddle_fsync } : __heddle_fsync

      def fdatasync = Scheduler.current ? Fsync.run(self) { __heddle_fdatasync } : __heddle_fdatasync

      def self.run(io, &) = PoolThread.run("the disk of", io, &)
    end
  end
end
