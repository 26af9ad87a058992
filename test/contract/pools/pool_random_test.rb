# frozen_string_literal: true

require_relative "../../test_helper"

# One round of random use of a Heddle::Pool, by tasks and by threads that are cancelled, timed out, raised into and
# killed. The seed decides what they do, not how they meet.
class RandomPoolRound
  # What went wrong; the first is enough.
  class Failure < StandardError; end

  # An exception from outside, at any time.
  class FromOutside < StandardError; end

  # A connection that notices when it is used wrongly.
  class Connection
    def initialize(round)
      @round = round
      @users = 0
      @closed = false
    end

    def use
      @round.flaw("used after its end") if @closed
      @round.flaw("used by two") unless (@users += 1) == 1
      yield
    ensure
      @users -= 1
    end

    def close
      @round.flaw("closed twice") if @closed
      @round.flaw("closed in use") unless @users.zero?
      @closed = true
      @round.closed(self)
    end
  end

  def initialize(seed)
    @seed = seed
    @rng = Random.new(seed)
    @luck = Random.new(seed + 1) # of connections
    @size = @rng.rand(1..4)
    @threads = @rng.rand(3).zero? ? @rng.rand(1..3) : 0
    @tasks = @rng.rand(2..12)
    @open = {}.compare_by_identity
    @raised = @ticket = @started = @uses = 0
    @lock = Thread::Mutex.new
    check = @rng.rand(2).zero? ? ->(_) { pause(0.3) || @luck.rand(8).positive? } : nil
    @pool = Heddle::Pool.new(size: @size, check:) { make }
  end

  # @return [Integer] how often a connection was used
  def play
    threads = Thread.handle_interrupt(FromOutside => :never) do
      Array.new(@threads) { |i| Thread.new { act_in_thread(@seed + (100 * i)) } }
    end
    tasks = Array.new(@tasks) { |i| Heddle.spawn { act(Random.new(@seed + 1000 + i)) } }
    raise_into(tasks, threads)
    tasks.each(&:wait)
    threads.each(&:join)
    tasks.each { |task| task.value unless task.cancelled? }
    check_end
    @uses
  end

  def flaw(what)
    @failure ||= "#{what} (seed #{@seed})"
    raise Failure, @failure
  end

  def closed(connection) = @open.delete(connection)

  private

  def make
    pause(0.3)
    raise IOError, "cannot connect" if @luck.rand(10).zero?

    Connection.new(self).tap do |connection|
      @lock.synchronize { @open[connection] = true }
      flaw("#{@open.size} connections of #{@size}") if @open.size > @size + @raised
    end
  end

  def pause(probability)
    sleep(@luck.rand * 0.002) if @luck.rand < probability
  end

  def act_in_thread(seed)
    Thread.current.report_on_exception = false
    Thread.handle_interrupt(FromOutside => :never) do
      20.times do |i|
        Thread.handle_interrupt(FromOutside => :immediate) { act(Random.new(seed + i), 1) }
      rescue FromOutside
        nil
      end
    end
  end

  def act(rng, times = 20)
    times.times do
      one_use(rng)
      sleep(rng.rand * 0.002) if rng.rand < 0.3
    rescue Heddle::TimeoutError, IOError, KeyError, Heddle::Pool::TimeoutError
      nil
    end
  end

  def one_use(rng)
    ticket = @ticket += 1
    case rng.rand(8)
    when 0 then Heddle.timeout(rng.rand * 0.003) { @pool.with { |connection| work(connection, rng, ticket) } }
    when 1 then @pool.with(timeout: rng.rand * 0.003) { |connection| work(connection, rng, ticket) }
    else @pool.with { |connection| work(connection, rng, ticket) }
    end
  end

  def work(connection, rng, ticket)
    check_turn(ticket)
    connection.use do
      sleep(rng.rand * 0.001) if rng.rand < 0.7
      @uses += 1
      @pool.with { |same| same.equal?(connection) or flaw("another one in a nested block") }
      case rng.rand(12)
      when 0 then @pool.discard
      when 1 then raise IOError
      when 2 then raise KeyError
      end
    end
  end

  # Of one place the turns are visible.
  def check_turn(ticket)
    return if @threads.positive? || @size > 1

    flaw("#{ticket} came after #{@started}") if ticket < @started
    @started = ticket
  end

  def raise_into(tasks, threads)
    @rng.rand(10).times do
      sleep(@rng.rand * 0.01)
      tasks.sample(random: @rng).cancel if @rng.rand < 0.5
      thread = threads.sample(random: @rng)
      next unless thread

      @raised += 1 # what it was about to get from the block that makes connections may be lost
      @rng.rand(4).zero? ? thread.kill : thread.raise(FromOutside)
    end
  end

  def check_end
    flaw("#{@pool.inspect} at the end") unless [@pool.in_use, @pool.waiting].sum.zero?
    flaw("#{@open.size} open, #{@pool.idle} idle") unless (@open.size - @pool.idle).between?(0, @raised)
    check_all_places
    @pool.close
    flaw("#{@open.size} open after close") if @open.size > @raised
  end

  def check_all_places
    together = 0
    all = Thread::Queue.new
    Array.new(@size) do
      Heddle.spawn do
        @pool.with { (together += 1) == @size ? all.close : all.pop(timeout: 20) }
      rescue IOError
        (together += 1) == @size ? all.close : all.pop(timeout: 20) # it had a place, and could not connect
      end
    end.each(&:value)
    flaw("#{together} of #{@size} places") unless all.closed?
  end
end

# See RandomPoolRound. HEDDLE_POOL_SEED=1234 plays one round again, HEDDLE_POOL_ROUNDS=1000 that many.
contract "RandomPool" do
  def test_random_use
    heddle_only("cancel")
    rounds = Integer(ENV.fetch("HEDDLE_POOL_ROUNDS", "40"))
    seed = ENV.fetch("HEDDLE_POOL_SEED", nil)
    seeds = seed ? [Integer(seed)] : Array.new(rounds) { Random.rand(10**9) }
    uses = seeds.sum do |one|
      Heddle.run(backend: backend) { RandomPoolRound.new(one).play }
    rescue StandardError => e
      flunk("HEDDLE_POOL_SEED=#{one}: #{e.full_message(highlight: false)}")
    end

    assert_operator(uses, :>, seeds.size)
  end
end
