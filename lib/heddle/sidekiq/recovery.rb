# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Puts back the jobs of processes that are gone.
    #
    # @private
    class Recovery
      include ::Sidekiq::Component

      # A job that was put back so many times within three days kills its processes, and goes to the dead jobs.
      TIMES = 3
      COUNTED_FOR = 3 * 24 * 60 * 60

      # One job: each step of it is done once, however many processes do this at the same time.
      PUT_BACK = <<~LUA
        if redis.call("lrem", KEYS[1], 1, ARGV[1]) == 0 then return 0 end
        local times = redis.call("incr", KEYS[3])
        redis.call("expire", KEYS[3], ARGV[4])
        if times <= tonumber(ARGV[3]) then
          redis.call("rpush", KEYS[2], ARGV[1])
          return 1
        end
        redis.call("zadd", KEYS[4], ARGV[2], ARGV[1])
        return 2
      LUA
      private_constant :TIMES, :COUNTED_FOR, :PUT_BACK

      # @param config [Sidekiq::Config]
      def initialize(config)
        @config = config
      end

      # With each heartbeat.
      # @return [void]
      def run
        queues = config.capsules.each_value.flat_map(&:queues).uniq
        ReliableFetch.say_alive(self, queues.map { |queue| "queue:#{queue}" }) # also after a long pause
        lists_of_the_dead.each { |member| empty(member) }
      end

      # This process ends, and has no jobs any more; if it has, the next one puts them back.
      # @return [void]
      def leave = redis { |redis| redis.unlink(ReliableFetch::ALIVE + identity) }

      private

      def lists_of_the_dead
        members = redis { |redis| redis.smembers(ReliableFetch::LISTS) }
        return [] if members.empty?

        alive = redis do |redis|
          redis.pipelined do |pipeline|
            members.each { |member| pipeline.exists(ReliableFetch::ALIVE + member.split("|", 2).first) }
          end
        end
        members.zip(alive).filter_map { |member, living| member if living.zero? }
      end

      def empty(member)
        process, queue = member.split("|", 2)
        list = ReliableFetch::PREFIX + member
        outcomes = redis { |redis| redis.lrange(list, 0, -1) }.map { |job| put_back(list, queue, job) }
        redis { |redis| redis.srem(ReliableFetch::LISTS, [member]) }
        again, dead = [1, 2].map { |outcome| outcomes.count(outcome) }
        logger.warn { "Process #{process} is gone: #{again} of its jobs are in #{queue} again" } if again.positive?
        logger.error { "#{dead} jobs have ended #{TIMES + 1} processes, and are dead now" } if dead.positive?
      end

      def put_back(list, queue, job)
        counter = "heddle:recovered:#{Digest::SHA256.hexdigest(job)}"
        redis do |redis|
          redis.call("EVAL", PUT_BACK, 4, list, queue, counter, "dead", job, Time.now.to_f, TIMES, COUNTED_FOR)
        end
      end
    end
    private_constant :Recovery
  end
end
