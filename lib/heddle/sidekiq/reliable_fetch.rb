# frozen_string_literal: true

require "digest"
require "sidekiq/fetch"

module Heddle
  module Sidekiq
    # Keeps a job in Redis while it is done, in a list of its process and queue: LMOVE takes it from the queue to there,
    # and it is removed when it is done, or when it is put back. A process says every 10 seconds, with Sidekiq's
    # heartbeat, that it is alive; if it has not for a minute, another one puts its jobs back.
    #
    # @private
    class ReliableFetch < ::Sidekiq::BasicFetch
      # The members are "PROCESS|QUEUE", the lists are named PREFIX + member.
      LISTS = "heddle:working"
      PREFIX = "heddle:working:"
      ALIVE = "heddle:alive:"
      # Seconds for which a process is alive that says no more; Sidekiq's own heartbeat has the same.
      ALIVE_FOR = 60

      # From the first queue that has a job. The lists of this process come after the queues, in the same order.
      TAKE = <<~LUA
        for number = 1, #KEYS / 2 do
          local job = redis.call("lmove", KEYS[number], KEYS[number + #KEYS / 2], "right", "left")
          if job then return {KEYS[number], job} end
        end
      LUA

      # Puts a job back, unless another one has done so.
      GIVE_BACK = <<~LUA
        if redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
        return redis.call("rpush", KEYS[2], ARGV[1])
      LUA
      private_constant :TAKE

      # A job that is in a list.
      UnitOfWork = Struct.new(:queue, :job, :fetch) do
        def queue_name = queue.delete_prefix("queue:")
        def acknowledge = fetch.acknowledge(self)
        def requeue = fetch.give_back([self])
      end
      private_constant :UnitOfWork

      # @param config [Sidekiq::Config]
      # @return [void]
      def self.set(config)
        return if config[:fetch_class] == self
        raise ArgumentError, "config: its fetch_class is #{config[:fetch_class]}" if config[:fetch_class]

        recovery = Recovery.new(config)
        config[:fetch_class] = self
        config.on(:beat) { recovery.run }
        config.on(:exit) { recovery.leave } if config[:lifecycle_events].key?(:exit) # not before Sidekiq 8.1
      end

      # @param component [Sidekiq::Component] of this process
      # @param queues [Array<String>]
      # @return [void]
      def self.say_alive(component, queues)
        members = queues.map { |queue| "#{component.identity}|#{queue}" }
        component.redis do |redis|
          redis.multi do |transaction|
            transaction.set(ALIVE + component.identity, "1", "EX", ALIVE_FOR)
            transaction.sadd(LISTS, members) if members.any?
          end
        end
      end

      # @param capsule [Sidekiq::Capsule]
      def initialize(capsule)
        super
        @lists = @queues.uniq.to_h { |queue| [queue, "#{PREFIX}#{identity}|#{queue}"] }
        @alive_until = 0
        @turn = 0
      end

      def retrieve_work
        queues = queues_cmd
        return if queues.empty? && sleep(TIMEOUT) # (Sidekiq::BasicFetch does the same)

        say_alive
        queue, job = redis { |redis| take(redis, queues) || wait(redis, queues) }
        UnitOfWork.new(queue, job, self) if job
      end

      # @param jobs [Array<UnitOfWork>] that were begun when the process has to end
      def bulk_requeue(jobs)
        return if jobs.empty?

        give_back(jobs)
        logger.info("Pushed #{jobs.size} jobs back to Redis")
      rescue ::RedisClient::Error => e # they stay in the list, and are put back when this process is gone
        logger.warn("Failed to requeue #{jobs.size} jobs: #{e.message}")
      end

      def acknowledge(unit)
        redis { |redis| redis.lrem(lists.fetch(unit.queue), 1, unit.job) }
      end

      def give_back(units)
        redis do |redis|
          redis.pipelined do |pipeline|
            units.each { |unit| pipeline.call("EVAL", GIVE_BACK, 2, lists.fetch(unit.queue), unit.queue, unit.job) }
          end
        end
      end

      private

      attr_reader :lists

      def take(redis, queues)
        redis.call("EVAL", TAKE, queues.size * 2, *queues, *lists.values_at(*queues))
      end

      # Redis waits for one queue only, so those who wait take turns.
      def wait(redis, queues)
        queue = queues[(@turn += 1) % queues.size]
        limit = TIMEOUT / queues.size.to_f
        job = redis.blocking_call(limit, "BLMOVE", queue, lists.fetch(queue), "RIGHT", "LEFT", limit)
        [queue, job] if job
      end

      # The others look into the lists of this process before they get a job: at first, and after a long pause, before
      # the next heartbeat.
      def say_alive
        return if Clock.now < @alive_until

        self.class.say_alive(self, lists.keys)
        @alive_until = Clock.now + (ALIVE_FOR / 2)
      end
    end
    private_constant :ReliableFetch
  end
end

require_relative "recovery"
