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

      # Puts a job back, unless another process has done so. A job on trial goes back to its trial.
      GIVE_BACK = <<~LUA
        #!lua flags=allow-oom
        if redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
        local times = tonumber(redis.call("get", KEYS[2]) or 0)
        return redis.call("rpush", KEYS[2 + math.min(math.max(times, 1), #KEYS - 2)], ARGV[1])
      LUA
      private_constant :PAUSE, :TAKE, :CLAIM, :GIVE_BACK

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
          of_this_process { @process ||= "#{component.hostname.tr("|", "-")}:#{@pid}:#{SecureRandom.hex(8)}" }
        end

        # @return [HeldJobs] the jobs of this process, of all its configurations: they have the same lists
        def held = of_this_process { @held ||= HeldJobs.new }

        # @param list [String] the list of a process in which it is
        # @param queue [String]
        # @param job [String]
        # @return [Array<String>] the command that gives it back
        def give_back(list, queue, job)
          keys = [list, Trial.counter(job), *Trial.places(queue)]
          ["EVAL", GIVE_BACK, keys.size, *keys, job]
        end

        private

        def of_this_process
          @naming.synchronize do
            @process = @held = nil if @pid != ::Process.pid
            @pid = ::Process.pid
            yield
          end
        end
      end
      @naming = Mutex.new

      # @param capsule [Sidekiq::Capsule]
      # @param process [String, nil] the name of the process
      # @param trial [Trial]
      # @param held [HeldJobs, nil] the jobs of the process
      def initialize(capsule, process: nil, trial: capsule.config[:heddle_trial], held: nil)
        super(capsule)
        @process = process
        @trial = trial
        @given = held
        @turn = 0
      end

      def retrieve_work
        queues = queues_cmd
        return if queues.empty? && sleep(TIMEOUT) # as Sidekiq::BasicFetch does

        held.fetch { @trial.fetch(suspect: ->(lists) { take_once(queues, lists) }) { take(queues) || wait(queues) } }
      end

      # @param units [Array<UnitOfWork>] the jobs that had begun when the process has to end
      def bulk_requeue(units)
        return if units.empty?

        logger.info("Pushed #{units.count { |unit| !unit.done }} jobs back to Redis") if give_back(units)
      rescue ::RedisClient::CannotConnectError => e
        held.release(*units)
        logger.warn("Failed to requeue #{units.size} jobs: #{e.message}")
      end

      # Repeats the command until Redis confirms it: a job that stays in the list would run again when this process has
      # ended.
      #
      # @param unit [UnitOfWork]
      def acknowledge(unit)
        redis { |redis| redis.lrem(lists.fetch(unit.queue), 1, unit.job) }
        held.release(unit)
      rescue StandardError => e
        logger.warn("A job is done, which Redis does not take down yet: #{e.message}") unless unit.done
        unit.done = true
        sleep(PAUSE)
        retry
      end

      # Tries it once. A repeat after a reply that was lost could find another job with the same text. If Redis has not
      # done it, the jobs are still in the lists, where the recovery of this process finds them, or that of another one.
      #
      # @param units [Array<UnitOfWork>]
      # @return [Boolean] has Redis done it?
      # @raise [RedisClient::CannotConnectError] may be tried again
      def give_back(units)
        redis do |redis|
          redis.pipelined do |pipeline|
            units.each do |unit|
              list = lists.fetch(unit.queue)
              next pipeline.call_once("LREM", list, 1, unit.job) if unit.done

              pipeline.call_once(*ReliableFetch.give_back(list, unit.queue, unit.job))
            end
          end
        end
        held.release(*units)
        true
      rescue ::RedisClient::CannotConnectError # nothing was sent
        raise
      rescue StandardError => e
        held.release(*units)
        logger.warn("Failed to requeue #{units.size} jobs: #{e.message}")
        false
      end

      private

      def held = @given || ReliableFetch.held

      # @return [Hash{String => String}] by queue: the members of LISTS that belong to this process; a fork has others
      def members
        name = @process || ReliableFetch.process(self)
        return @members if @name == name

        @members = @queues.uniq.to_h { |queue| [queue, "#{name}|#{queue}"] }
        @lists = @members.transform_values { |member| PREFIX + member }
        @alive = ALIVE + name
        @name = name
        @members
      end

      def lists = members && @lists

      def take(queues)
        queue, job = redis { |redis| redis.call(*command(queues, queues)) }
        UnitOfWork.new(queue, job, self) if job
      end

      # Takes a job on trial. The client does not repeat this command when the reply is lost: two jobs would stand trial
      # where one has to be alone.
      #
      # @param prefix [String] of the lists in which these jobs wait
      def take_once(queues, prefix)
        list, job = redis { |redis| redis.call_once(*command(queues, queues.map { |queue| prefix + queue })) }
        UnitOfWork.new(list.delete_prefix(prefix), job, self) if job
      end

      def command(queues, places)
        keys = [*places, *lists.values_at(*queues), LISTS, @alive]
        ["EVAL", TAKE, keys.size, *keys, ALIVE_FOR, *members.values_at(*queues)]
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
        redis { |redis| redis.call("EVAL", CLAIM, keys.size, *keys, job, members.fetch(queue), ALIVE_FOR) }
      end
    end
    private_constant :ReliableFetch
  end
end

require_relative "held_jobs"
require_relative "recovery"
require_relative "trial"
