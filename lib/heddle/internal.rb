# frozen_string_literal: true

module Heddle
  # Methods that the parts of Heddle call of each other, and nobody else: they are private, except in files that say
  # <tt>using Internal</tt>. Ruby needs 50 ns more for such a call, so the methods that each scope calls are public and
  # have the tag @private instead.
  #
  # @private
  module Internal
    refine Scheduler.singleton_class do
      public :ended_counted, :forget_writer, :latency_bounds, :of_blocking_fiber, :pool_counts,
             :need_stack, :thread_can_start?, :workers, :no_slices, :exempt
    end

    refine Scheduler do
      # methods of tasks and scopes
      public :busy?, :end_task, :for_the_thread?, :force, :interrupt_chain, :kill_fiber, :late_scope,
             :left_task, :main_fiber, :outside?, :put_back, :raise_pending, :task=,
             :time_left, :unblocked, :wait_until_closed, :waiters_of
      # methods of a dump
      public :counts, :running, :timeouts, :waits, :watch
      # methods of tasks that another thread spawns
      public :call_loop, :left
      # methods of Heddle.stats
      public :counted, :states
      # methods of Heddle.offload, Heddle.shield and reports of errors
      public :hold_back, :offload_block, :shield
      # methods of time slices
      public :slice_time, :time_slice, :whole
      # methods of Heddle::Testing
      public :home?, :others_stuck?, :pool_idle?, :test_with, :virtual_ns, :wait_until_idle
      # methods of the code that replaces Ruby's own methods
      public :busy_writers, :inside?, :cached?, :cached_kind, :inline, :offload, :open_descriptor, :outlast,
             :send_file, :was_set
    end
  end
  private_constant :Internal
end
