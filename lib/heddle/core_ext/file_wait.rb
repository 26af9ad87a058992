# frozen_string_literal: true

module Heddle
  module CoreExt
    # What waits for a disk or for the owner of a lock, and is not offered to a scheduler by (every) Ruby: a thread of
    # the pool does it.
    module FileWait
      # For IO.
      module Sync
        # @private
        def fsync = FileWait.run("the disk of", self) { super }
        # @private
        def fdatasync = FileWait.run("the disk of", self) { super }
      end

      # For File.
      module Lock
        # @private
        def flock(operation)
          waits = operation.is_a?(Integer) && operation.nobits?(File::LOCK_NB | File::LOCK_UN)
          scheduler = Fiber.current_scheduler
          return super unless waits && scheduler.is_a?(Scheduler)

          taken = scheduler.__send__(:quickly) { super(operation | File::LOCK_NB) }
          taken || FileWait.run("the lock of", self, lasting: true) { super }
        end
      end

      # Runs the block on a thread of the pool; on the spot where no Heddle scheduler runs.
      def self.run(what = "the file system", file = nil, lasting: false, &block)
        scheduler = Fiber.current_scheduler
        return yield unless scheduler.is_a?(Scheduler)

        scheduler.__send__(:offload, block, lasting: lasting, name: [what, file].compact)
      end
    end
  end
end

IO.prepend(Heddle::CoreExt::FileWait::Sync)
File.prepend(Heddle::CoreExt::FileWait::Lock)
