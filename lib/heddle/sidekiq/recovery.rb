# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Puts back the jobs of processes that have ended.
    #
    # @private
    class Recovery
      include ::Sidekiq::Component

      # A job that was put back less often than this within three days goes back into its queue. Then it stands trial,
      # first with others and then alone. If its process ends during that, it goes to the dead jobs.
      TIMES = 3
      # Seconds between two checks.
      PAUSE = 10

      SAY_ALIVE = <<~LUA
        #!lua flags=allow-oom
        return redis.call("set", KEYS[1], "1", "EX", ARGV[1])
      LUA

      # Puts one job back: each step is done once, however many processes do this at the same time.
      PUT_BACK = <<~LUA
        #!lua flags=allow-oom
        if redis.call("exists", KEYS[1]) == 1 or redis.call("lrem", KEYS[2], 1, ARGV[1]) == 0 then return 0 end
        local times, most = redis.call("incr", KEYS[3]), tonumber(ARGV[3])
        redis.call("expire", KEYS[3], ARGV[4])
        if times > most and redis.call("exists", KEYS[4]) == 1 then
          redis.call("zadd", KEYS[5], ARGV[2], ARGV[1])
          return 2
        end
        redis.call("rpush", KEYS[5 + math.min(times, most)], ARGV[1])
        return 1
      LUA

      # Removes the list of a process that has ended. The process may have gone on meanwhile, after a long pause, and
      # taken a job.
      FORGET = <<~LUA
        #!lua flags=allow-oom
        if redis.call("exists", KEYS[3]) == 1 or redis.call("llen", KEYS[1]) > 0 then return 0 end
        return redis.call("srem", KEYS[2], ARGV[1])
      LUA
      private_constant :TIMES, :PAUSE, :SAY_ALIVE, :PUT_BACK, :FORGET

      # @param config [Sidekiq::Config]
      # @param trial [Trial]
      # @param process [String, nil] the name of this process
      # @param held [HeldJobs, nil] its jobs
      def initialize(config, trial:, process: nil, held: nil)
        @config = config
        @trial = trial
        @given = held
        @process = process
        @left = Thread::Queue.new
        @landed = {} # by queue: the job that had landed there at the last check
      end

      # Checks the other processes every 10 seconds. Sidekiq's heartbeat could not do this while Redis is full.
      # @return [void]
      def start
        safe_thread("heddle/recovery") do
          until @left.closed?
            look { run }
            pause
          end
        end
      end

      # @return [void]
      def run
        say_alive
        members = redis { |redis| redis.smembers(ReliableFetch::LISTS) }
        of_the_dead(members).each { |member| empty(member) }
        queues.each { |queue| give_back_landed(queue) }
        give_back_lost(members.select { |member| member.start_with?("#{name}|") })
      end

      # Called when this process ends and has no jobs left; if it has any, the next process puts them back.
      # @return [void]
      def leave
        @left.close
        @trial.leave
        redis { |redis| redis.unlink(alive) }
      end

      private

      def look
        yield
      rescue StandardError => e # Redis is away
        logger.warn("heddle/sidekiq: #{e.message}")
        nil
      end

      def pause
        ends = Clock.now + PAUSE
        until @left.closed? || (left = ends - Clock.now).negative?
          on_trial = look { @trial.step && say_alive }
          @left.pop(timeout: on_trial ? Trial::PAUSE : left)
        end
      end

      def name = @process || ReliableFetch.process(self)
      def held = @given || ReliableFetch.held

      def alive(process = name) = ReliableFetch::ALIVE + process

      def say_alive = script(SAY_ALIVE, [alive], ReliableFetch::ALIVE_FOR)

      def script(text, keys, *) = redis { |redis| redis.call("EVAL", text, keys.size, *keys, *) }

      # @param members [Array<String>] those of this process
      def give_back_lost(members)
        listed = members.flat_map do |member|
          queue = member.split("|", 2).last
          next [] if redis { |redis| redis.llen(ReliableFetch::PREFIX + member) } == held.count(queue)

          jobs_of(member).map { |job| [queue, job] }
        end
        own = "#{ReliableFetch::PREFIX}#{name}|"
        back = held.lost(listed).count { |queue, job| give_back(own + queue, queue, job) }
        logger.warn { "Redis has handed over #{back} jobs in vain: they are in the queue again" } if back.positive?
      end

      # @return [Boolean] was it there?
      def give_back(list, queue, job)
        redis { |redis| redis.call_once(*ReliableFetch.give_back(list, queue, job)) }.positive?
      end

      def jobs_of(member) = redis { |redis| redis.lrange(ReliableFetch::PREFIX + member, 0, -1) }

      # @return [Array<String>] those of the members whose process has ended
      def of_the_dead(members)
        return [] if members.empty?

        living = redis do |redis|
          redis.pipelined do |pipeline|
            members.each { |member| pipeline.exists(alive(member.split("|", 2).first)) }
          end
        end
        members.zip(living).filter_map { |member, exists| member if exists.zero? }
      end

      def empty(member)
        process, queue = member.split("|", 2)
        list = ReliableFetch::PREFIX + member
        outcomes = jobs_of(member).map { |job| put_back(process, list, queue, job) }
        script(FORGET, [list, ReliableFetch::LISTS, alive(process)], member)
        again, dead = [1, 2].map { |outcome| outcomes.count(outcome) }
        logger.warn { "Process #{process} is gone: #{again} of its jobs are in #{queue} again" } if again.positive?
        logger.error { "#{dead} jobs have ended #{TIMES + 1} processes, and are dead now" } if dead.positive?
      end

      def queues
        own = config.capsules.each_value.flat_map(&:queues).map { |queue| "queue:#{queue}" }
        redis { |redis| redis.smembers(ReliableFetch::QUEUES) } | own
      end

      # A process takes a job that has landed at once. If the job is there at the next check as well, the process has
      # ended.
      def give_back_landed(queue)
        list = ReliableFetch::LANDED + queue
        jobs = redis { |redis| redis.lrange(list, 0, -1) }
        jobs.intersection(@landed[queue] || []).each { |job| give_back(list, queue, job) }
        @landed[queue] = jobs
      end

      def put_back(process, list, queue, job)
        keys = [alive(process), list, Trial.counter(job), Trial::ALONE + process, "dead", *Trial.places(queue)]
        script(PUT_BACK, keys, job, Time.now.to_f, TIMES, Trial::COUNTED_FOR)
      end
    end
    private_constant :Recovery
  end
end
