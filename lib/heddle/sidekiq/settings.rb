# frozen_string_literal: true

module Heddle
  # Runs the processors of Sidekiq as tasks of one thread, with `require "heddle/sidekiq"`. guides/jobs.md shows how to
  # use it.
  module Sidekiq
    @threaded = []
    @time_slice = nil

    class << self
      # Keeps the processors of these capsules as threads, for jobs that compute, or that wait in C. Call it in an
      # initializer.
      #
      # @param capsules [Array<String, Symbol>] their names; the name of Sidekiq's own is "default"
      # @return [void]
      # @raise [ArgumentError] if an argument is not a name
      def keep_threads(*capsules)
        capsules.each do |name|
          next if name.is_a?(String) || name.is_a?(Symbol)

          Check.refuse("capsules: #{name.inspect} is not the name of a capsule")
        end
        @threaded |= capsules.map(&:to_s)
        nil
      end

      # Sets for how long a job may compute while other jobs wait. Then they run, in the middle of its code. Call it in
      # an initializer.
      #
      # @example
      #   Heddle::Sidekiq.time_slice = 0.01
      #
      # @param seconds [Numeric, false, nil] from 0.001; false: a job computes until it waits, so no other job runs
      #   between two waits; nil: HEDDLE_TIME_SLICE, else 0.005 where time slices work
      # @return [Numeric, false, nil]
      # @raise [ArgumentError] if it is no such number
      def time_slice=(seconds)
        TimeSlices.check(seconds)
        @time_slice = seconds
      end

      # @return [Numeric, false, nil] the seconds that a job may compute while other jobs wait
      def time_slice = TimeSlices.chosen(@time_slice)

      # Makes Sidekiq fetch jobs in such a way that none is lost when its process is killed: a job stays in a list in
      # Redis until it is done. When the process has been silent for a minute, another one puts the job back into its
      # queue. It works for threads, too.
      #
      # @example
      #   Sidekiq.configure_server { |config| Heddle::Sidekiq.fetch_reliably(config) }
      #
      # @param config [Sidekiq::Config]
      # @return [void]
      # @raise [ArgumentError] if another way to fetch is set
      def fetch_reliably(config)
        require_relative "reliable_fetch"
        ReliableFetch.set(config)
      end

      # @private
      # @param capsule [Sidekiq::Capsule]
      # @return [Boolean] are its processors tasks?
      def tasks?(capsule) = !@threaded.include?(capsule.name)
    end
  end
end
