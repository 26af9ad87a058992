# frozen_string_literal: true

# A program that uses ActiveRecord in tasks, and prints what came out, as JSON. It is a process of its own, for two
# versions of ActiveRecord do not fit into one. ActiveRecordCase starts it: program.rb VERSION BACKEND CONFIG

require "json"
require "socket"

version, backend, config = ARGV
gem("activerecord", version)
require "bigdecimal" # trilogy needs it, and finds it only with Bundler
require "active_record"
require "heddle/rails"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
BACKEND = backend
CONFIG = JSON.parse(config, symbolize_names: true)
# Before ActiveRecord 8 SQLite itself sleeps until a lock is free: no other task can free it.
require "heddle/adapters/sqlite3" if CONFIG.fetch(:adapter) == "sqlite3" && ActiveRecord.version < Gem::Version.new("8")
ANSWER = { "postgresql" => "SELECT %d FROM pg_sleep(%f)", "trilogy" => "SELECT %d + SLEEP(%f)",
           "mysql2" => "SELECT %d + SLEEP(%f)", "sqlite3" => "SELECT %d + 0 * %f" }.fetch(CONFIG.fetch(:adapter))

class Entry < ActiveRecord::Base; end

# The test of the same name says what each of these does (ActiveRecordCase).
module Program
  COUNT = 200
  BEGUN = Thread::Queue.new # a transaction has, whose end will come
  SCENARIOS = %i[many_tasks block_and_task transactions cancels checkout_timeouts leases endings
                 interrupted_begin busy_writer].freeze

  module_function

  def run
    establish
    Entry.with_connection { |connection| connection.create_table(:entries, force: true) { |t| t.integer :number } }
    Entry.reset_column_information
    Entry.count # learns the columns
    outcomes = SCENARIOS.to_h do |name|
      Entry.delete_all
      [name, send(name)]
    end
    puts JSON.generate(version: ActiveRecord.version.to_s, **outcomes)
  end

  def establish(**options)
    ActiveRecord::Base.establish_connection(pool: 10, checkout_timeout: 60, reaping_frequency: nil, **CONFIG, **options)
  end

  def pool = ActiveRecord::Base.connection_pool

  def heddle(&) = Heddle.run(backend: BACKEND, &)

  # An answer for which the server takes this time.
  def ask(number, seconds)
    pool.with_connection { |connection| connection.select_value(format(ANSWER, number, seconds)).to_i }
  end

  def numbers = Entry.order(:number).pluck(:number)

  def stat = pool.stat.slice(:busy, :dead, :waiting)

  def many_tasks
    answers = heddle { Heddle.map(0...COUNT) { |number| ask(number, 0.01) } }
    heddle { Heddle.each(1..COUNT) { |number| Entry.find(Entry.create!(number: 0).id).update!(number: number) } }
    { answers: answers, numbers: numbers, connections: pool.stat[:connections], **stat }
  end

  # The block of a run is in the transaction of its caller, a task is not.
  def block_and_task
    seen = nil
    Entry.transaction do
      Entry.create!(number: 1)
      seen = heddle { Array.new(2) { |number| Entry.create!(number: number) && Heddle.spawn { Entry.count }.value } }
      seen << Entry.count
      raise ActiveRecord::Rollback
    end
    { seen: seen, numbers: numbers, **stat }
  end

  # Each second one commits, and the others end in two ways.
  def transactions
    errors = heddle do
      Heddle.settle(0...40) do |number|
        Entry.transaction do
          Entry.create!(number: number)
          sleep(0.001 * (number % 5)) # others run
          raise ActiveRecord::Rollback if number % 4 == 1
          raise IOError, "no" if number % 4 == 3

          Entry.create!(number: number + 100)
        end
      end.filter_map(&:error)
    end
    { numbers: numbers, errors: errors.map(&:class).tally, **stat }
  end

  # Where they are: in the line for a connection, in a query, in one of the statements of a transaction.
  def cancels
    cancelled = heddle { Array.new(10) { |round| start_and_cancel(round) }.sum }
    left = stat
    whole = numbers.tally.values_at(1, 2).compact.uniq.size < 2
    tasks = heddle { Heddle.settle(0...COUNT) { |number| ask(number, 0.001) } }
    answers = tasks.map { |task| task.error || task.value }
    { cancelled: cancelled, left: left, answers: answers, whole: whole, connections: pool.stat[:connections], **stat }
  end

  def start_and_cancel(round)
    tasks = Array.new(100) do |number|
      Heddle.spawn(isolated: true) { number.even? ? ask(number, 0.02) : change_and_ask }
    end
    sleep(0.006 * round) # for this long they go on
    tasks.each(&:cancel).each(&:wait)
    failed = tasks.filter_map(&:error).grep_v(Heddle::Cancelled)
    raise failed.first if failed.any?

    tasks.count(&:cancelled?)
  end

  def change_and_ask
    Entry.transaction do
      Entry.create!(number: 1)
      ask(1, 0.01)
      Entry.create!(number: 2)
    end
  end

  def checkout_timeouts
    establish(pool: 2, checkout_timeout: 0.2)
    heddle do
      release = Thread::Queue.new
      holders = Array.new(2) { Heddle.spawn { pool.with_connection { release.pop } } }
      early = Heddle.settle(0...10) { |number| ask(number, 0) }.map { |task| task.error.class }
      release.close
      holders.each(&:wait)
      late = Heddle.map(0...10, limit: 2) { |number| ask(number, 0) }
      { early: early.uniq, late: late, **stat }
    end
  ensure
    establish
  end

  def leases
    heddle { Heddle.each(0...COUNT, limit: 10) { Entry.lease_connection.select_value("SELECT 1") } }
    stat
  end

  # A transaction that something ends while one of its steps waits.
  def endings
    number = 0
    waits = { sleep: -> { sleep(5) }, query: -> { ask(1, 2) } }
    waits.delete(:query) if CONFIG[:adapter] == "sqlite3" # does not wait
    Endings.singleton_methods.product(waits.keys).to_h do |ending, wait|
      number += 10 # MariaDB keeps the locks of the one before for a while
      BEGUN.clear
      Endings.public_send(ending) { half_done(number, &waits.fetch(wait)) }
      ["#{ending} in a #{wait}", { rows: Entry.where(number: [number, number + 1]).count, **stat }]
    end
  end

  def half_done(number)
    Entry.transaction do
      Entry.create!(number: number)
      BEGUN << true
      yield
      Entry.create!(number: number + 1)
    end
  end

  # The server has begun the transaction, and ActiveRecord thinks that it has not.
  def interrupted_begin
    return unless CONFIG[:port]

    line = Line.new(CONFIG.fetch(:port))
    establish(pool: 1, port: line.port)
    Entry.count # connects
    subscriber = ActiveSupport::Notifications.subscribe("sql.active_record", line)
    heddle do
      task = Heddle.spawn { Entry.transaction { Entry.insert_all([{ number: 1 }]) } }
      line.wait_until_held
      task.cancel.wait
      line.release
    end
    ActiveSupport::Notifications.unsubscribe(subscriber)
    Entry.insert_all([{ number: 2 }]) # without a transaction of its own
    Entry.transaction { raise ActiveRecord::Rollback if Entry.count == 1 }
    { numbers: numbers, **stat }
  ensure
    establish
    line&.close
  end

  # SQLite lets one connection write at a time.
  def busy_writer
    return if CONFIG[:port]

    ticks = 0
    heddle do
      Heddle.spawn(background: true) { loop { sleep(0.01) && ticks += 1 } }
      holder = Heddle.spawn do
        Entry.transaction do
          Entry.create!(number: 1)
          sleep(0.01) until ticks > 5
        end
      end
      Entry.create!(number: 2)
      { waited: holder.finished?, numbers: numbers, **stat }
    end
  end
end

# Stands between ActiveRecord and the server. It passes on everything, but no answer from the first BEGIN on.
class Line
  attr_reader :port

  def initialize(server_port)
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.local_address.ip_port
    @held = Thread::Queue.new
    @going_on = Thread::Queue.new
    @holds = false
    @thread = Thread.new { loop { serve(@listener.accept, TCPSocket.new("127.0.0.1", server_port)) } }
  end

  # Called by ActiveRecord, before it sends a statement.
  def start(_name, _id, payload) = (@holds = true if payload[:sql].match?(/\bBEGIN\b/i))

  def finish(*) = nil

  def wait_until_held = @held.pop

  def release = @going_on.close

  def close
    @thread.kill.join
    @listener.close
  end

  private

  def serve(client, server)
    Thread.new { ask(client, server) }
    Thread.new { answer(client, server) }
  end

  def ask(client, server)
    loop { server.write(client.readpartial(10_000)) }
  rescue SystemCallError, IOError
    server.close
  end

  def answer(client, server)
    loop do
      data = server.readpartial(10_000)
      (@held << true) && @going_on.pop if @holds
      client.write(data)
    end
  rescue SystemCallError, IOError
    client.close
  end
end

# Each starts the block in a task, and ends it when it waits.
module Endings
  class << self
    def cancel(&work)
      Program.heddle do
        task = Heddle.spawn(&work)
        wait_until_it_waits
        task.cancel
      end
    end

    def timeout(&work)
      Program.heddle { Timeout.timeout(0.1, &work) }
    rescue Timeout::Error
      nil
    end

    def sibling_that_fails(&work)
      Program.heddle do
        Heddle.spawn(&work)
        wait_until_it_waits
        raise IOError, "no"
      end
    rescue IOError
      nil
    end

    def thread_raise(&work)
      thread = in_thread(&work)
      thread.raise(IOError, "no")
      thread.join
    rescue IOError, ActiveRecord::StatementInvalid # (ActiveRecord wraps what is raised in its query)
      nil
    end

    def thread_kill(&work)
      in_thread(&work).kill.join
    rescue ActiveRecord::StatementInvalid # (mysql2 refuses a ROLLBACK after a query that was killed, also in a thread)
      nil
    end

    private

    def wait_until_it_waits
      Program::BEGUN.pop
      sleep(0.1)
    end

    def in_thread(&work)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Program.heddle(&work)
      end
      wait_until_it_waits
      thread
    end
  end
end

Program.run
