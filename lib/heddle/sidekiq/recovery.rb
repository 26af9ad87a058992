# frozen_string_literal: true

require "digest"

module Heddle
  module Sidekiq
    # Puts back the jobs of processes that have ended.
    #
    # @private
    class Recovery
      include ::Sidekiq::Component

      # A job that was put back this number of times within three days kills its processes, and goes to the dead jobs.
      TIMES = 3
      COUNTED_FOR = 3 * 24 * 60 * 60
      # Seconds between two checks.
      PAUSE = 10

      SAY_ALIVE = <<~LUA
        #!lua flags=allow-oom
        return redis.call("set", KEYS[1], "1", "EX", ARGV[1])
      LUA

      # Puts one job back: each step is done once, however many processes do this at the same time.
      PUT_BACK = <<~LUA
        #!lua flags=allow-oom
        if redis.call("exists", KEYS[5]) == 1 or redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
        local times = redis.call("incr", KEYS[3])
        redis.call("expire", KEYS[3], ARGV[4])
        if times <= tonumber(ARGV[3]) then
          redis.call("rpush", KEYS[2], ARGV[1])
          return 1
        end
        redis.call("zadd", KEYS[4], ARGV[2], ARGV[1])
        return 2
      LUA

      # Removes the list of a process that has ended. The process may have gone on meanwhile, after a long pause, and
      # taken a job.
      FORGET = <<~LUA
        #!lua flags=allow-oom
        if redis.call("exists", KEYS[3]) == 1 or redis.call("llen", KEYS[1]) > 0 then return 0 end
        return redis.call("srem", KEYS[2], ARGV[1])
      LUA
      private_constant :TIMES, :COUNTED_FOR, :PAUSE, :SAY_ALIVE, :PUT_BACK, :FORGET

      # @param config [Sidekiq::Config]
      # @param process [String, nil] the name of this process
      def initialize(config, process: nil)
        @config = config
        @process = process
        @left = Thread::Queue.new
        @landed = {} # by queue: the job that had landed there at the last check
      end

      # Checks the other processes every 10 seconds. Sidekiq's heartbeat could not do this while Redis is full.
      # @return [void]
      def start
        safe_thread("heddle/recovery") do
          until @left.closed?
            look
            @left.pop(timeout: PAUSE)
          end
        end
      end

      # @return [void]
      def run
        say_alive
        lists_of_the_dead.each { |member| empty(member) }
        queues.each { |queue| give_back_landed(queue) }
      end

      # Called when this process ends and has no jobs left; if it has any, the next process puts them back.
      # @return [void]
      def leave
        @left.close
        redis { |redis| redis.unlink(alive) }
      end

      private

      def look
        run
      rescue StandardError => e # Redis is away
        logger.warn("heddle/sidekiq: #{e.message}")
      end

      def alive(process = @process || ReliableFetch.process(self)) = ReliableFetch::ALIVE + process

      def say_alive = script(SAY_ALIVE, [alive], ReliableFetch::ALIVE_FOR)

      def script(text, keys, *) = redis { |redis| redis.call("EVAL", text, keys.size, *keys, *) }

      def lists_of_the_dead
        members = redis { |redis| redis.smembers(ReliableFetch::LISTS) }
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
        jobs = redis { |redis| redis.lrange(list, 0, -1) }
        outcomes = jobs.map { |job| put_back(list, queue, job, alive(process)) }
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
        jobs.intersection(@landed[queue] || []).each { |job| script(ReliableFetch::GIVE_BACK, [list, queue], job) }
        @landed[queue] = jobs
      end

      def put_back(list, queue, job, alive)
        counter = "heddle:recovered:#{Digest::SHA256.hexdigest(job)}"
        script(PUT_BACK, [list, queue, counter, "dead", alive], job, Time.now.to_f, TIMES, COUNTED_FOR)
      end
    end
    private_constant :Recovery
  end
end
