# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/redis"

# What the tests below are made of.
module ReliableFetchSteps
  # From which a process takes jobs.
  PLACES = %w[queue:one heddle:suspects:queue:one heddle:accused:queue:one].freeze

  # A process, as far as Redis sees it. Each of its commands is a step.
  class FakeProcess
    # @return [Array<String>] the jobs that it has done
    attr_reader :done
    # @return [Heddle::Sidekiq::HeldJobs]
    attr_reader :held

    def initialize(name, redis, steps, held: Heddle::Sidekiq.const_get(:HeldJobs).new)
      @done = []
      @held = held
      config = Config.new(redis.is_a?(RedisClient) ? Stepped.new(redis, steps) : redis)
      @trial = Heddle::Sidekiq.const_get(:Trial).new(config, process: name)
      @fetch = fetch_class.new(config, process: name, trial: @trial, held:)
      [@trial, @fetch].each { |one| one.define_singleton_method(:sleep) { |_seconds| nil } } # no pauses
      @recovery = Heddle::Sidekiq.const_get(:Recovery).new(config, process: name, trial: @trial, held:)
    end

    def fetch_class = Heddle::Sidekiq.const_get(:ReliableFetch)
    def take = @unit = @fetch.retrieve_work

    def finish
      unit = @unit
      @unit = nil
      return unless unit

      @done << unit.job
      unit.acknowledge
    end

    def give_back = @unit&.requeue
    def look = @recovery.run
    def try = @trial.step
    def leave = @recovery.leave
  end

  # Stops before each command, and after it.
  class Stepped
    def initialize(redis, steps)
      @redis = redis
      @steps = steps
    end

    def step(**)
      Fiber.yield if @steps
      yield.tap { Fiber.yield if @steps }
    end

    def call(*) = step { @redis.call(*) }
    def call_once(*) = step(once: true) { @redis.call_once(*) }
    def blocking_call(...) = step { @redis.blocking_call(...) }

    def pipelined(&)
      pipeline = Pipeline.new([]).tap(&)
      step(once: pipeline.once) { pipeline.run(@redis) }
    end

    def lrem(*) = call("LREM", *)
    def llen(*) = call("LLEN", *)
    def lrange(*) = call("LRANGE", *)
    def sadd(*) = call("SADD", *)
    def smembers(*) = call("SMEMBERS", *)
    def unlink(*) = call("UNLINK", *)

    Pipeline = Struct.new(:commands, :once) do
      def call(*command) = commands << command
      def call_once(*command) = call(*command) && (self.once = true)
      def exists(key) = call("EXISTS", key)
      def run(redis) = redis.pipelined { |pipeline| commands.each { |command| pipeline.call(*command) } }
    end
    private_constant :Pipeline
  end

  # Loses the replies to some commands. The client repeats such a command, or raises an error.
  class Lossy < Stepped
    # @param lost [Array<Integer>] the numbers of these commands
    # @param meanwhile [#call] is called between the command and what follows
    def initialize(redis, lost, repeats:, comes_late: [], meanwhile: -> {})
      super(redis, false)
      @lost = lost
      @repeats = repeats
      @comes_late = comes_late
      @meanwhile = meanwhile
      @number = -1
    end

    # @return [Array<String>] jobs that come when the process waits for one
    attr_reader :comes_late

    # @return [Boolean] were they all lost?
    def lost? = @number >= @lost.max

    def blocking_call(limit, *command, _limit)
      @comes_late.shift(2).each { |job| @redis.call("LPUSH", "queue:one", job) }
      super(limit, *command, 0.01)
    end

    def step(once: false)
      reply = yield
      return reply unless @lost.include?(@number += 1)

      @meanwhile.call
      raise RedisClient::ReadTimeoutError, "the reply is lost" if once || !@repeats

      yield
    end
  end

  # What both classes ask of Sidekiq.
  Config = Struct.new(:connection) do
    def redis = yield(connection)
    def queues = %w[one]
    def mode = :strict
    def logger = Logger.new(nil)
    def hostname = "host"
    def capsules = { "default" => self }
  end
end

# fetch_reliably, step by step: processes are paused and killed between any two of their commands, while others look for
# the jobs of processes that are gone. Each job is in a queue or done in the end.
contract "ReliableFetch" do
  extend TestSupport::Clients

  client "redis-client", server: TestSupport::Servers::Redis

  def setup
    super
    missing = TestSupport::Clients.load("sidekiq", "sidekiq/version")
    skip(missing) if missing
    require "sidekiq"
    require "sidekiq/component"
    require "sidekiq/capsule"
    require "heddle/sidekiq/settings"
    require "heddle/sidekiq/reliable_fetch"
    @redis = RedisClient.config(host: "127.0.0.1", port: server.port).new_client
  end

  def teardown
    @redis&.close
    super
  end

  # One takes a job and is stopped after any number of steps. It counts as gone, and another one looks after its jobs,
  # and is stopped after any number of steps, too. Meanwhile the first one may go on for some steps, and is killed.
  { take: [:take], finish: %i[take finish],
    give_back: %i[take give_back], again: %i[take finish take] }.each do |name, calls|
    once define_method("test_no_step_loses_a_job_#{name}") { check_all(calls, %w[one two]) }
  end

  # The jobs come when it waits for them.
  once def test_no_step_of_a_wait_loses_a_job = check_all(%i[take finish], [])

  # It stands trial with others, or alone.
  %w[suspects accused].each do |place|
    name = define_method("test_no_step_of_a_trial_loses_a_job_of_the_#{place}") do
      check_all(%i[try try take finish try], %w[one two], "heddle:#{place}:queue:one")
    end
    once(name)
  end

  # All jobs come back at first. Then they stand trial, and a process that has other jobs begins none.
  once def test_a_trial
    reset("a job")
    3.times { |number| die_with(number) }
    process = ReliableFetchSteps::FakeProcess.new("last", @redis, false)
    @redis.call("LPUSH", "queue:one", "another job")

    assert_equal("another job", process.take.job)
    assert_equal([true, true], [process.try, process.try])
    process.finish

    assert_nil(process.take)
    assert(process.try)
    assert_equal("a job", process.take.job)
    process.finish

    refute(process.try)
    assert_equal([nil, nil], @redis.call("MGET", "heddle:trial", "heddle:alone:last"))
  end

  # Only one process tries suspects. Its end is the end of the job that it ran alone, and of no other one.
  once def test_the_cause
    reset("the cause", "another job")
    3.times { |number| die_with(number) }
    first, second = %w[first second].map { |name| ReliableFetchSteps::FakeProcess.new(name, @redis, false) }

    assert_equal([true, false, true], [first.try, second.try, first.try])
    @redis.call("LPUSH", "queue:one", "a new job")
    taken = first.take.job

    assert_equal([nil, "a new job"], [first.take, second.take.job])
    gone
    ReliableFetchSteps::FakeProcess.new("last", @redis, false).look

    assert_equal([taken], @redis.call("ZRANGE", "dead", 0, -1))
    assert_equal((["the cause", "another job", "a new job"] - [taken]).sort, waiting.sort)
  end

  # A fetch takes the job between any two commands of the step that looks whether the trial is over.
  once def test_a_suspect_that_begins_during_a_step
    @place = "heddle:accused:queue:one"
    (0..).each do |steps|
      reset("a job")
      @redis.call("SET", counter("a job"), 3)
      process = ReliableFetchSteps::FakeProcess.new("process", @redis, true)
      count(run_steps(process, %i[try try]))
      step = run_steps(process, [:try])
      steps.times { step.resume if step.alive? }
      count(run_steps(process, [:take]))
      ended = !step.alive?
      step.resume while step.alive?
      begun = own_lists.any?
      gone
      ReliableFetchSteps::FakeProcess.new("last", @redis, false).look

      assert_equal(["a job"], begun ? @redis.call("ZRANGE", "dead", 0, -1) : waiting, "after #{steps} commands")
      return assert_operator(steps, :>, 4) if ended
    end
  end

  # A member that was left out while it had no job comes back with the next one.
  once def test_a_process_that_was_gone_goes_on
    reset("a job")
    slow = ReliableFetchSteps::FakeProcess.new("slow", @redis, false)
    other = ReliableFetchSteps::FakeProcess.new("other", @redis, false)
    slow.look
    gone
    other.look
    slow.take
    gone
    other.look

    assert_equal(["a job"], queue)
  end

  # Redis has moved a job, but its reply comes too late, or never. The client of Redis repeats commands, and each time
  # Redis moves another job. Meanwhile another processor takes jobs.
  { "raises" => false, "repeats" => true }.each do |name, repeats|
    once(define_method("test_no_lost_reply_loses_a_job_#{name}") do
      lose_replies(repeats) do |process, other, lost|
        12.times do
          break if [process, other].sum { |one| one.done.size } == 2 && own_lists.empty?

          lives { process.take && process.finish } if waiting.any?
          lives { process.look }
          other.finish
        end

        assert_equal(%w[one two], (process.done + other.done).sort, lost)
        assert_empty(waiting + own_lists, lost)
        assert_equal(0, process.held.count("queue:one"), lost)
      end
    end)

    # No second job begins beside a job on trial, and only one is dead if the process ends.
    [%i[take take], %i[take take look look look try take]].each do |steps|
      once(define_method("test_no_lost_reply_ends_an_innocent_job_#{name}_#{steps.size}") do
        lose_replies(repeats, "heddle:accused:queue:one") do |process, _other, lost|
          assert(lives { process.try }, "the trial begins, #{lost}")
          2.times { lives { process.try } }
          steps.each { |step| lives { process.public_send(step) } }
          gone
          2.times { ReliableFetchSteps::FakeProcess.new("last", @redis, false).look }

          assert_operator(@redis.call("ZCARD", "dead"), :<=, 1, lost)
          assert_equal(%w[one two], (waiting + @redis.call("ZRANGE", "dead", 0, -1)).sort, lost)
        end
      end)
    end
  end

  # A wait in Redis takes a job, and its reply is lost.
  once def test_no_lost_reply_of_a_wait_loses_a_job
    [false, true].product([*0..4]) do |repeats, lost|
      reset
      connection = ReliableFetchSteps::Lossy.new(@redis, [lost], repeats:, comes_late: %w[one two])
      process = ReliableFetchSteps::FakeProcess.new("process", connection, false)
      lives { process.take && process.finish } until connection.comes_late.empty?
      3.times { lives { process.look } }
      6.times { lives { process.take && process.finish } if waiting.any? }

      assert_predicate(connection, :lost?)
      assert_equal(%w[one two], process.done.sort, [repeats, lost])
    end
  end

  # The process looks for lost jobs at any moment of a fetch, of a job, and of its end. The jobs have the same text.
  { take: %w[one one], wait: [] }.each do |name, jobs|
    once(define_method("test_no_look_takes_a_job_away_#{name}") do
      (0..14).each do |steps|
        reset(*jobs)
        process = ReliableFetchSteps::FakeProcess.new("process", @redis, true)
        looks = ReliableFetchSteps::FakeProcess.new("process", @redis, false, held: process.held)
        fiber = run_steps(process, %i[take finish take finish])
        if jobs.empty?
          go_on(fiber, 4) # Redis has no job, and the list of the queue is known
          @redis.call("LPUSH", "queue:one", "one", "one")
        end
        go_on(fiber, steps)
        3.times { looks.look }
        go_on(fiber, 1)
        3.times { looks.look }
        fiber.resume while fiber.alive?
        looks.take && looks.finish while waiting.any?
        3.times { looks.look }

        assert_equal(%w[one one], process.done + looks.done, steps)
        assert_empty(waiting + own_lists, steps)
        assert_equal(0, process.held.count("queue:one"))
      end
    end)
  end

  # Between two checks one job has come and was done, and another one with the same text is on its way.
  once def test_another_job_with_the_same_text
    held = Heddle::Sidekiq.const_get(:HeldJobs).new
    job = Struct.new(:queue, :job).new("queue:one", "one")

    assert_empty(held.lost([job.to_a]))
    held.release(held.fetch { job })
    lost = nil
    held.fetch { (lost = held.lost([job.to_a])) && nil }

    assert_empty(lost)
    assert_equal([job.to_a], held.lost([job.to_a]))
  end

  # Two that look at the same time put a job back once.
  once def test_two_that_start_at_once
    (0..looks).each do |steps|
      reset("a job")
      ReliableFetchSteps::FakeProcess.new("killed", @redis, false).take
      gone
      one = run_steps(ReliableFetchSteps::FakeProcess.new("one", @redis, true), [:look])
      steps.times { one.alive? && one.resume }
      ReliableFetchSteps::FakeProcess.new("two", @redis, false).look
      one.resume while one.alive?

      assert_equal(["a job"], queue, "after #{steps} steps")
    end
  end

  # The name is of this process alone: that of its parent is not.
  once def test_names
    component = ReliableFetchSteps::Config.new(nil)
    name = Heddle::Sidekiq.const_get(:ReliableFetch).process(component)
    other = IO.popen("-") do |io|
      io ? io.read : print(Heddle::Sidekiq.const_get(:ReliableFetch).process(component))
    end

    assert_match(/\Ahost:#{Process.pid}:\h{16}\z/, name)
    assert_equal(name, Heddle::Sidekiq.const_get(:ReliableFetch).process(component))
    refute_equal(name.split(":"), other.split(":"))
    refute_equal(name[/\h+\z/], other[/\h+\z/])
  end

  private

  def reset(*jobs)
    @redis.call("FLUSHALL")
    jobs.each { |job| @redis.call("LPUSH", @place || "queue:one", job) }
  end

  def queue = @redis.call("LRANGE", "queue:one", 0, -1)

  # Yields a process for each pair of its commands, of which the replies are lost, with another processor of it.
  def lose_replies(repeats, place = "queue:one")
    @place = place
    (0..).each do |first|
      (first..).each do |second|
        connection = lossy_connection([first, second], repeats)
        yield @process, @other, [first, second]
        next if connection.lost?
        return assert_operator(first, :>, 5) if first == second

        break
      end
    end
  end

  def lossy_connection(lost, repeats)
    reset("one", "two")
    %w[one two].each { |job| @redis.call("SET", counter(job), 3) } if @place.include?("accused")
    meanwhile = -> { @other.take if waiting.any? && @place == "queue:one" && own_lists.empty? }
    ReliableFetchSteps::Lossy.new(@redis, lost, repeats:, meanwhile:).tap do |connection|
      @process = ReliableFetchSteps::FakeProcess.new("process", connection, false)
      @other = ReliableFetchSteps::FakeProcess.new("process", @redis, false, held: @process.held)
    end
  end

  # @return [Array<String>] the lists of processes that have a job
  def own_lists = @redis.call("KEYS", "heddle:working:*")

  def counter(job) = Heddle::Sidekiq.const_get(:Trial).counter(job)

  # As Sidekiq does, which logs the error.
  def lives
    yield
  rescue RedisClient::ReadTimeoutError
    true
  end

  # @return [Array<String>] the jobs in all places from which a process takes jobs
  def waiting = ReliableFetchSteps::PLACES.flat_map { |place| @redis.call("LRANGE", place, 0, -1) }

  # A process ends with all jobs.
  def die_with(number)
    process = ReliableFetchSteps::FakeProcess.new("process #{number}", @redis, false)
    2.times { process.try }
    process.take while waiting.any?
    gone
    @redis.call("DEL", "heddle:trial")
    ReliableFetchSteps::FakeProcess.new("looks #{number}", @redis, false).look
  end

  # A minute has passed, in which none of them said that it is alive.
  def gone = @redis.call("KEYS", "heddle:alive:*").each { |key| @redis.call("DEL", key) }

  def run_steps(process, calls) = Fiber.new { calls.each { |call| process.public_send(call) } && nil }

  # @return [Integer] of how many steps it is
  def count(fiber)
    steps = 0
    steps += 1 while fiber.resume || fiber.alive?
    steps
  end

  # With a job of another process.
  def looks
    @looks ||= begin
      reset("one")
      ReliableFetchSteps::FakeProcess.new("gone", @redis, false).take
      gone
      count(run_steps(ReliableFetchSteps::FakeProcess.new("looks", @redis, true), [:look]))
    end
  end

  def check_all(calls, jobs, place = "queue:one")
    @place = place
    reset("one", "two")
    most = count(run_steps(ReliableFetchSteps::FakeProcess.new("counted", @redis, true), calls)) + (jobs.empty? ? 6 : 0)
    most.times do |first|
      (0..looks).each do |second|
        [0, 1, 2, most].each { |third| check_case(calls, jobs, [first, second, third]) }
      end
    end
  end

  def check_case(calls, jobs, steps)
    reset(*jobs)
    process = ReliableFetchSteps::FakeProcess.new("killed", @redis, true)
    killed = run_steps(process, calls)
    if jobs.empty?
      go_on(killed, 2)
      @redis.call("LPUSH", "queue:one", "one", "two")
    end
    go_on(killed, steps[0])
    gone
    looking = run_steps(ReliableFetchSteps::FakeProcess.new("looking", @redis, true), [:look])
    go_on(looking, steps[1])
    go_on(killed, steps[2])
    looking.resume while looking.alive?
    gone
    ReliableFetchSteps::FakeProcess.new("last", @redis, false).then { |last| 2.times { last.look } }
    check_end(process.done, steps)
  end

  def go_on(fiber, steps) = steps.times { fiber.alive? && fiber.resume }

  def check_end(done, steps)
    places = waiting + @redis.call("ZRANGE", "dead", 0, -1)

    assert_empty(%w[one two] - places - done, steps)
    assert_empty(@redis.call("KEYS", "heddle:working*") + @redis.call("KEYS", "heddle:landed*"), steps)
    assert_equal(places.uniq, places, steps)
  end
end
