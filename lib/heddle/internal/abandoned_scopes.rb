# frozen_string_literal: true

module Heddle
  using Internal

  # Scopes whose owners never come back, for example because the Enumerator is never called again. They do not keep the
  # run from its end.
  module AbandonedScopes
    module_function

    # Ends them, if their tasks are all that is left of a scheduler. These may have opened and abandoned other scopes
    # meanwhile.
    # @param scheduler [Heddle::Scheduler]
    def end_in(scheduler)
      scopes = scheduler.scopes.keys
      abandoned = scopes.select { |scope| scope.abandoned? && scope.in_block? }
      return if abandoned.empty? || (scheduler.waits.map { |wait| wait[:root] } - fibers_in(abandoned, scopes)).any?

      abandoned.each { |scope| scheduler.fiber { scope.end_abandoned_here } }
    end

    # @return [Array<Fiber>] the fibers of these scopes, and of scopes that their tasks have opened
    def fibers_in(scopes, all)
      fibers = scopes.flat_map(&:fibers)
      fibers.empty? ? [] : fibers + fibers_in(all.select { |scope| fibers.include?(scope.root) }, all)
    end
  end
  private_constant :AbandonedScopes
end
