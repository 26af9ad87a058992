# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"

# What ActiveSupport and ActiveRecord keep by fiber: the block of Heddle.run has what its caller has.
contract "ActiveSupport" do
  extend TestSupport::Clients

  client "pg"
  client "activerecord", file: "active_record", server: TestSupport::Servers::Postgres

  heddle_only "Heddle.run"

  def setup
    super
    require "active_support/current_attributes"
    require "active_support/core_ext/time"
  end

  # A request: in a thread of its own, as under Puma.
  def request(level)
    ActiveSupport::IsolatedExecutionState.isolation_level = level
    Thread.new do
      Thread.current.report_on_exception = false
      yield
    end.value
  ensure
    ActiveSupport::IsolatedExecutionState.isolation_level = :thread
  end

  # They are kept by the name of their class.
  def current
    @current ||= Class.new(ActiveSupport::CurrentAttributes) do
      attribute :user
      define_singleton_method(:name) { "HeddleTestCurrent" }
    end
  end

  %i[thread fiber].each do |level|
    define_method("test_current_attributes_and_the_time_zone_by_#{level}") do
      request(level) do
        current.user = "ada"
        Time.zone = "Berlin"
        seen = Heddle.run(backend: backend) do
          sleep(0.001)
          before = [current.user, Time.zone.name]
          current.user = "bob"
          [before, Heddle.run { current.user }]
        end

        assert_equal([%w[ada Berlin], "bob"], seen)
        assert_equal("bob", current.user)
      end
    end
  end

  def test_tasks_have_their_own
    request(:fiber) do
      current.user = "ada"
      seen = Heddle.run(backend: backend) { [Heddle.spawn { current.user }.value, current.user] }

      assert_equal([nil, "ada"], seen)
    end
  end

  def test_the_block_is_in_the_transaction_of_its_caller
    ActiveRecord::Base.establish_connection(adapter: "postgresql", host: host, port: server.port, username: "heddle",
                                            database: "postgres", pool: 5, reaping_frequency: nil)
    request(:fiber) do
      ActiveRecord::Base.transaction do
        connection = ActiveRecord::Base.lease_connection
        connection.execute("CREATE TABLE in_a_transaction (id integer)") # nobody else sees it before the commit
        Heddle.run(backend: backend) do
          assert_same(connection, ActiveRecord::Base.lease_connection)
          insert(1)
        end
        insert(2)

        assert_equal(2, ActiveRecord::Base.lease_connection.select_value("SELECT count(*) FROM in_a_transaction"))
        raise ActiveRecord::Rollback
      end
      ActiveRecord::Base.connection_handler.clear_active_connections!
    end
  ensure
    ActiveRecord::Base.remove_connection
  end

  def insert(id)
    ActiveRecord::Base.lease_connection.execute("INSERT INTO in_a_transaction VALUES (#{id})")
  end
end
