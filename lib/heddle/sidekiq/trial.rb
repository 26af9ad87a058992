# frozen_string_literal: true

require "digest"

module Heddle
  module Sidekiq
    # Finds the job that ends its processes among the jobs that ran beside it.
    #
    # All jobs of a process come back when it has ended, and only one of them may be the cause. After the first time
    # they go back into their queue. After the second time they are suspects: a process takes no other job until its own
    # have ended, and then runs some suspects. After the third time it runs one of them alone. If this process ends, the
    # job was the cause. When a suspect has ended, or runs on for a long time, the process takes other jobs again.
    #
    # Only one process at a time does this. The thread of the recovery calls #step, and the fetches call #fetch.
    #
    # @private
    class Trial
      include ::Sidekiq::Component

      # By prefix of the lists in which they wait: how many suspects a process runs at the same time.
      SUSPECTS = { "heddle:accused:" => 1, "heddle:suspects:" => 20 }.freeze
      # The key of a process that runs a suspect alone.
      ALONE = "heddle:alone:"
      # Seconds for which the processes that have ended with a job are counted.
      COUNTED_FOR = 3 * 24 * 60 * 60
      # Names the process that tries suspects.
      LOCK = "heddle:trial"
      # Seconds between two steps, for which the lock is held, in which the other jobs have to end, for which a suspect
      # is tried (it doubles with each process that ended), and until the next trial after one that took longer.
      PAUSE = 0.5
      LOCKED_FOR = 60
      EMPTY_IN = 60
      TIME = 60
      LONGEST = 3600
      REST = 600

      # The lock may belong to another process meanwhile, if this one was paused.
      KEEP = <<~LUA
        if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call("expire", KEYS[1], ARGV[2])
      LUA
      OVER = <<~LUA
        if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) end
        return redis.call("del", KEYS[2])
      LUA
      private_constant :SUSPECTS, :LOCK, :LOCKED_FOR, :EMPTY_IN, :TIME, :LONGEST, :REST, :KEEP, :OVER

      class << self
        # @param job [String]
        # @return [String] the key that counts the processes which have ended with this job
        def counter(job) = "heddle:recovered:#{Digest::SHA256.hexdigest(job)}"

        # @param queue [String]
        # @return [Array<String>] where its jobs wait after the first, second and third process
        def places(queue) = [queue, *SUSPECTS.keys.reverse.map { |prefix| prefix + queue }]
      end

      # @param config [Sidekiq::Config]
      # @param process [String, nil] the name of this process
      def initialize(config, process: nil)
        @config = config
        @process = process
        @lock = Mutex.new
        @fetches = 0 # under way
        @lists = nil # where the suspects wait that are tried now
        @free = 0 # how many more may begin
        @tried = nil # the job that has begun last
        @next = Clock.now
      end

      # Yields to fetch any job, except during a trial.
      #
      # @param suspect [#call] takes a job from the lists with the given prefix
      # @return [Object, nil] a job
      def fetch(suspect:)
        return unless (kind = enter)

        begin
          unit = kind == :any ? yield : try(kind, suspect)
        ensure
          @lock.synchronize { @fetches -= 1 }
        end
        sleep(PAUSE) unless unit || kind == :any
        unit
      end

      # @return [Boolean] is a trial under way?
      def step
        @lists ? go_on : consider
        !@lists.nil?
      end

      # @return [void]
      def leave = @lists && over

      private

      def name = @process || ReliableFetch.process(self)

      # A process may have several configurations, with a trial each.
      def owner = "#{name}|#{object_id}"

      def enter
        kind = @lock.synchronize do
          next if @lists && @free.zero?

          @fetches += 1
          @lists || :any
        end
        kind || (sleep(PAUSE) && nil)
      end

      def try(lists, suspect)
        return unless @lock.synchronize { @free.positive? && (@free -= 1) }

        unit = suspect.call(lists)
        @lock.synchronize { unit ? @tried = unit.job : @free += 1 }
        unit
      end

      def consider
        return unless Clock.now >= @next && (lists = waiting)

        former = redis { |redis| redis.call("SET", LOCK, owner, "NX", "GET", "EX", LOCKED_FOR) }
        return unless former.nil? || former == owner # the client has repeated the command

        @ends = Clock.now + EMPTY_IN
        @begun = false
        @lock.synchronize { @lists = lists }
      end

      # @return [String, nil] the prefix of lists in which suspects wait
      def waiting = SUSPECTS.keys.find { |prefix| any?(prefix) }

      def any?(prefix)
        queues = config.capsules.each_value.flat_map(&:queues).uniq
        redis do |redis|
          redis.pipelined { |pipeline| queues.each { |queue| pipeline.call("LLEN", "#{prefix}queue:#{queue}") } }
        end.any?(&:positive?)
      end

      def go_on
        return over if redis { |redis| redis.call("EVAL", KEEP, 1, LOCK, owner, LOCKED_FOR) }.zero?

        extend_time
        return give_up if Clock.now > @ends

        none_begins do |free|
          next free if jobs? || (@begun && free.positive? && any?(@lists))

          (lists = waiting) ? start(lists) : over
        end
      end

      # Yields how many suspects may still begin, unless a fetch is under way. None begins meanwhile: it would not count
      # as alone.
      #
      # @yieldreturn [Integer] how many may begin afterwards
      def none_begins
        free = @lock.synchronize { @fetches.zero? && @free.tap { @free = 0 } } or return
        begin
          free = yield(free)
        ensure
          @lock.synchronize { @free = free }
        end
      end

      def extend_time
        return unless (job = @lock.synchronize { @tried.tap { @tried = nil } })

        times = redis { |redis| redis.call("GET", Trial.counter(job)) }.to_i
        @ends = Clock.now + [TIME * (2**(times - 2)), LONGEST].min
      end

      def give_up
        @next = Clock.now + REST
        over
      end

      # @return [Boolean] does this process have any?
      def jobs?
        members = redis { |redis| redis.smembers(ReliableFetch::LISTS) }.select { |one| one.start_with?("#{name}|") }
        redis { |redis| members.any? { |member| redis.call("LLEN", ReliableFetch::PREFIX + member).positive? } }
      end

      # @return [Integer] how many may begin
      def start(lists)
        number = SUSPECTS.fetch(lists)
        alone = ALONE + name
        redis { |redis| number == 1 ? redis.call("SET", alone, 1, "EX", COUNTED_FOR) : redis.call("DEL", alone) }
        @begun = true
        @ends = Clock.now + TIME
        @lists = lists
        number
      end

      # Other jobs may begin as soon as none of them counts as alone.
      # @return [Integer] how many suspects may begin
      def over
        redis { |redis| redis.call("EVAL", OVER, 2, LOCK, ALONE + name, owner) }
        @lock.synchronize do
          @lists = nil
          @free = 0
        end
      end
    end
    private_constant :Trial
  end
end
