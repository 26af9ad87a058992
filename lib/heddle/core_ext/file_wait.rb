# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # What waits for a disk or for the owner of a lock, and is not offered to a scheduler by (every) Ruby: a thread of
    # the pool does it.
    module FileWait
      # For IO.
      module Sync
        # @private
        def fsync
          return __heddle_fsync unless Scheduler.current

          FileWait.run("the disk of", self) { __heddle_fsync }
        end

        # @private
        def fdatasync
          return __heddle_fdatasync unless Scheduler.current

          FileWait.run("the disk of", self) { __heddle_fdatasync }
        end
      end

      # For File.
      module Lock
        # @private
        def flock(operation)
          scheduler = Scheduler.current
          waits = operation.is_a?(Integer) && operation.nobits?(File::LOCK_NB | File::LOCK_UN) if scheduler
          return __heddle_flock(operation) unless waits && scheduler

          attempt = -> { __heddle_flock(operation | File::LOCK_NB) }
          taken = scheduler.quickly(&attempt)
          taken || FileWait.run("the lock of", self, lasting: true, attempt: attempt) { __heddle_flock(operation) }
        end
      end

      # Runs the block on a thread of the pool; on the spot where no Heddle scheduler runs. The block must not call
      # anything of the program's: conversions of arguments, methods that may be overridden.
      #
      # @param options [Hash] see BlockingPool#run
      def self.run(what = "the file system", file = nil, **options, &block)
        scheduler = Scheduler.current
        return yield unless scheduler

        scheduler.offload(block, **options, name: [what, file].compact)
      end
    end
  end
end

Heddle::CoreExt.replace(IO, Heddle::CoreExt::FileWait::Sync)
Heddle::CoreExt.replace(File, Heddle::CoreExt::FileWait::Lock)
