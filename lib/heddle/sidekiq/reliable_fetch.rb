# frozen_string_literal: true

require "securerandom"
require "sidekiq/fetch"

module Heddle
  module Sidekiq
    # Keeps a job in Redis while it runs, in a list of its process and queue: a script moves it from the queue to the
    # list, and it is removed when it is done, or when it is put back. A process says every 10 seconds that it is alive;
    # if it has been silent for a minute, another one puts its jobs back.
    #
    # Each step is one command or script, so that a process may be paused or killed between any two of them. A list with
    # a job in it is always among LISTS: the script that takes a job enters it, and only an empty list of a dead process
    # is left out. A wait in Redis runs no script: the job lands in a list of its queue, which all processes always
    # check, and the script takes it from there. All scripts also run in a full Redis.
    #
    # @private
    class ReliableFetch < ::Sidekiq::BasicFetch
      # The members are "PROCESS|QUEUE", the lists are named PREFIX + member.
      LISTS = "heddle:working"
      PREFIX = "heddle:working:"
      ALIVE = "heddle:alive:"
      # The list in which a job lands after a wait; and the set of queues that have such a list.
      LANDED = "heddle:landed:"
      QUEUES = "heddle:queues"
      # Seconds for which a process counts as alive after its last sign of life; Sidekiq's own heartbeat uses the same
      # number.
      ALIVE_FOR = 60
      # Seconds until the next attempt to say that a job is done.
      PAUSE = 0.5

      # Takes a job from the first queue that has one. The lists of this process come after the queues, in the same
      # order.
      TAKE = <<~LUA
        #!lua flags=allow-oom
        local queues = (#KEYS - 2) / 2
        for number = 1, queues do
          local job = redis.call("lmove", KEYS[number], KEYS[number + queues], "right", "left")
          if job then
            redis.call("sadd", KEYS[#KEYS - 1], ARGV[number + 1])
            redis.call("set", KEYS[#KEYS], "1", "EX", ARGV[1])
            return {KEYS[number], job}
          end
        end
      LUA

      # Takes a job that has landed, unless another process has put it back.
      CLAIM = <<~LUA
        #!lua flags=allow-oom
        if redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return end
        redis.call("lpush", KEYS[2], ARGV[1])
        redis.call("sadd", KEYS[3], ARGV[2])
        redis.call("set", KEYS[4], "1", "EX", ARGV[3])
        return ARGV[1]
      LUA

      # Puts a job back, unless another process has done so.
      GIVE_BACK = <<~LUA
        #!lua flags=allow-oom
        if redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
        return redis.call("rpush", KEYS[2], ARGV[1])
      LUA
      private_constant :PAUSE, :TAKE, :CLAIM

      # A job that is in a list.
      UnitOfWork = Struct.new(:queue, :job, :fetch, :done) do
        def queue_name = queue.delete_prefix("queue:")
        def acknowledge = fetch.acknowledge(self)
        def requeue = fetch.give_back([self])
      end
      private_constant :UnitOfWork

      class << self
        # @param config [Sidekiq::Config]
        # @return [void]
        def set(config)
          return if config[:fetch_class] == self
          raise ArgumentError, "config: its fetch_class is #{config[:fetch_class]}" if config[:fetch_class]

          recovery = Recovery.new(config, trial: config[:heddle_trial] = Trial.new(config))
          config[:fetch_class] = self
          config.on(:startup) { recovery.start }
          config.on(:exit) { recovery.leave } if config[:lifecycle_events].key?(:exit) # not before Sidekiq 8.1
        end

        # Names this process. In a fork that was made after the first use of Sidekiq's own name, that name belongs to
        # the parent.
        #
        # @param component [Sidekiq::Component]
        # @return [String] the name of this process, which no other process has or will have
        def process(component)
          @process = nil if @pid != ::Process.pid
          @pid = ::Process.pid
          @process ||= "#{component.hostname.tr("|", "-")}:#{@pid}:#{SecureRandom.hex(8)}"
        end
      end

      # @param capsule [Sidekiq::Capsule]
      # @param process [String] the name of the process
      # @param trial [Trial]
      def initialize(capsule, process: ReliableFetch.process(capsule), trial: capsule.config[:heddle_trial])
        super(capsule)
        @trial = trial
        @alive = ALIVE + process
        @members = @queues.uniq.to_h { |queue| [queue, "#{process}|#{queue}"] }
        @lists = @members.transform_values { |member| PREFIX + member }
        @turn = 0
        @registered = false
      end

      def retrieve_work
        queues = queues_cmd
        return if queues.empty? && sleep(TIMEOUT) # as Sidekiq::BasicFetch does

        @trial.fetch(suspect: ->(lists) { take(queues, lists) }) { take(queues) || wait(queues) }
      end

      # @param units [Array<UnitOfWork>] the jobs that had begun when the process has to end
      def bulk_requeue(units)
        return if units.empty?

        give_back(units)
        logger.info("Pushed #{units.count { |unit| !unit.done }} jobs back to Redis")
      rescue StandardError => e # they stay in the list, and are put back when this process is gone
        logger.warn("Failed to requeue #{units.size} jobs: #{e.message}")
      end

      # Repeats the command until Redis confirms it: a job that stays in the list would run again when this process has
      # ended.
      #
      # @param unit [UnitOfWork]
      def acknowledge(unit)
        redis { |redis| redis.lrem(lists.fetch(unit.queue), 1, unit.job) }
      rescue StandardError => e
        logger.warn("A job is done, which Redis does not take down yet: #{e.message}") unless unit.done
        unit.done = true
        sleep(PAUSE)
        retry
      end

      # @param units [Array<UnitOfWork>]
      def give_back(units)
        redis do |redis|
          redis.pipelined do |pipeline|
            units.each do |unit|
              list = lists.fetch(unit.queue)
              next pipeline.call("LREM", list, 1, unit.job) if unit.done

              pipeline.call("EVAL", GIVE_BACK, 2, list, unit.queue, unit.job)
            end
          end
        end
      end

      private

      attr_reader :lists

      # @param prefix [String] of the lists in which jobs on trial wait, in place of the queues
      def take(queues, prefix = "")
        keys = [*queues.map { |queue| prefix + queue }, *lists.values_at(*queues), LISTS, @alive]
        place, job = redis do |redis|
          redis.call("EVAL", TAKE, keys.size, *keys, ALIVE_FOR, *@members.values_at(*queues))
        end
        UnitOfWork.new(place.delete_prefix(prefix), job, self) if job
      end

      # Waits for a job. Redis waits for one queue only, so waiting processors take turns.
      def wait(queues)
        register
        queue = queues[(@turn += 1) % queues.size]
        job = land(queue, TIMEOUT / queues.size.to_f)
        job &&= claim(queue, job)
        UnitOfWork.new(queue, job, self) if job
      end

      # Registers the lists of landed jobs. They are never removed.
      def register
        redis { |redis| redis.sadd(QUEUES, lists.keys) } unless @registered
        @registered = true
      end

      def land(queue, limit)
        redis { |redis| redis.blocking_call(limit, "BLMOVE", queue, LANDED + queue, "RIGHT", "LEFT", limit) }
      rescue ::RedisClient::CommandError => e
        raise unless e.message.start_with?("OOM")

        sleep(limit) # a full Redis refuses this command
        nil
      end

      def claim(queue, job)
        keys = [LANDED + queue, lists.fetch(queue), LISTS, @alive]
        redis { |redis| redis.call("EVAL", CLAIM, keys.size, *keys, job, @members.fetch(queue), ALIVE_FOR) }
      end
    end
    private_constant :ReliableFetch
  end
end

require_relative "recovery"
require_relative "trial"
