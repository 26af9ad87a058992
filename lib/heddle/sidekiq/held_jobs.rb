# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Knows which jobs a process has taken, and so which ones were taken in vain. Redis takes a job for the process, but
    # its reply is lost if it comes later than the client waits. The job is then in the list of the process, and nobody
    # runs it.
    #
    # A job counts as lost if two checks find it in the list, this process does not have it, and all fetches have ended
    # that were under way at the first check: one of them may have got it since.
    #
    # @private
    class HeldJobs
      def initialize
        @lock = Mutex.new
        @held = {}.compare_by_identity
        @fetches = {}.compare_by_identity
        @unknown = []
        @under_way = []
      end

      # @yield fetches a job
      # @yieldreturn [Object, nil]
      # @return [Object, nil] the job
      def fetch
        token = Object.new
        @lock.synchronize { @fetches[token] = true }
        unit = yield
      ensure
        @lock.synchronize do
          @fetches.delete(token)
          next unless unit

          @held[unit] = true
          @unknown.delete([unit.queue, unit.job])
        end
      end

      # @param units [Array<Object>] jobs that are no longer in the lists
      # @return [void]
      def release(*units) = @lock.synchronize { units.each { |unit| @held.delete(unit) } }

      # @param queue [String]
      # @return [Integer] how many of its jobs this process has
      def count(queue) = @lock.synchronize { @held.each_key.count { |unit| unit.queue == queue } }

      # @param listed [Array<Array<String>>] the queue and the text of each job in the lists of this process
      # @return [Array<Array<String>>] the lost ones among them
      def lost(listed)
        @lock.synchronize do
          unknown = without_held(listed)
          former = @unknown & unknown
          next [] unless former.empty? || @under_way.none? { |token| @fetches.key?(token) }

          @unknown = unknown - former
          @under_way = @fetches.keys
          former
        end
      end

      # A job has its fetch, which has all jobs.
      def inspect = "#<#{self.class}>"

      private

      # Two jobs may have the same text.
      def without_held(listed)
        held = @held.keys.map { |unit| [unit.queue, unit.job] }.tally
        listed.reject { |job| held[job]&.positive? && (held[job] -= 1) }
      end
    end
    private_constant :HeldJobs
  end
end
