# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # A thread of the pool waits for the owner of the lock.
    module Flock
      def flock(operation)
        scheduler = Scheduler.current
        waits = operation.is_a?(Integer) && operation.nobits?(File::LOCK_NB | File::LOCK_UN) if scheduler
        return __heddle_flock(operation) unless waits

        attempt = -> { __heddle_flock(operation | File::LOCK_NB) }
        taken = scheduler.inline(&attempt)
        taken || PoolThread.run("the lock of", self, lasting: true, attempt: attempt) { __heddle_flock(operation) }
      end
    end
  end
end
