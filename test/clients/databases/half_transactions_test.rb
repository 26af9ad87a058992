# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients"

# A cancel, or a timeout, in the midst of a transaction: none of its halves is committed. sqlite3 needs its adapter
# (test/adapters/sqlite3_test.rb), and pg, trilogy and redis-client have tests of their own.
contract "HalfTransactions" do
  extend TestSupport::Clients

  client "sqlite3"

  heddle_only "it is about tasks"

  def file = File.join(tempdir, "database")

  # @yield in a task: inserts 1, waits, and inserts 2, in a transaction
  def assert_whole(count, &work)
    { cancel: ->(wait) { Heddle.spawn { work.call(wait) }.then { |task| sleep(0.05) && task.cancel.wait } },
      heddle: ->(wait) { Heddle.timeout(0.05) { work.call(wait) } },
      timeout: ->(wait) { Timeout.timeout(0.05) { work.call(wait) } } }.each do |name, ending|
      begin
        ending.call(-> { sleep(5) })
      rescue Timeout::Error
        nil
      end

      assert_equal(0, count.call, name)
    end
    work.call(-> {})

    assert_equal(2, count.call)
  end

  def test_sequel
    missing = TestSupport::Clients.load("sequel", "sequel")
    skip(missing) if missing

    reactor do
      Sequel.extension(:fiber_concurrency)
      database = Sequel.connect(adapter: "sqlite", database: file, max_connections: 4)
      database.create_table(:numbers) { Integer(:number) }
      numbers = database[:numbers]
      assert_whole(-> { numbers.count }) do |wait|
        database.transaction do
          numbers.insert(1)
          database.transaction(savepoint: true) { wait.call }
          numbers.insert(2)
        end
      end
    ensure
      database&.disconnect
    end
  end

  def test_active_record
    missing = TestSupport::Clients.load("activerecord", "active_record/version")
    skip(missing) if missing

    program = <<~RUBY
      require "active_record"
      require "heddle/rails"
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "#{file}", pool: 4)
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define { create_table(:numbers) { |table| table.integer(:number) } }
      Number = Class.new(ActiveRecord::Base)
      work = lambda do |wait|
        Number.transaction do
          Number.create!(number: 1)
          Number.transaction(requires_new: true) { wait.call }
          Number.create!(number: 2)
        end
      end
      stay = -> { sleep(5) }
      counts = Heddle.run do
        [-> { Heddle.spawn { work.call(stay) }.then { |task| sleep(0.05) && task.cancel.wait } },
         -> { Heddle.timeout(0.05) { work.call(stay) } },
         -> { Timeout.timeout(0.05) { work.call(stay) } },
         -> { work.call(-> {}) }].map do |ending|
          ending.call
        rescue Timeout::Error
          nil
        ensure
          break if Number.count > 2
        end
        Number.count
      end
      print(counts.inspect, " ", Number.pluck(:number).sort.inspect)
    RUBY

    assert_equal("2 [1, 2]", assert_script(program, gems: true, env: { "HEDDLE_BACKEND" => backend }, options: %w[-W0]))
  end
end
