# frozen_string_literal: true

require "support/clients"

module TestSupport
  # Transactions in tasks, side by side on one thread. A contract that extends Clients includes this, and has #connect
  # and
  #
  #   def execute(client, sql)
  #   def number(client, sql)     # of the first row the first value, an Integer
  #   def transaction(client)     # yields the client
  module Transactions
    def setup
      super
      return unless server

      @table = "account_#{name}".downcase[0, 60]
      execute(connect, "DROP TABLE IF EXISTS #{@table}")
      execute(connect, "CREATE TABLE #{@table} (owner INT PRIMARY KEY, coins INT)")
    end

    def teardown
      execute(connect, "DROP TABLE #{@table}") if @table
      super
    end

    # None commits until all have looked.
    def test_each_sees_its_own_until_the_commit
      reactor do
        seen, = all_at_once(20) do |owner|
          transaction(connect) do |client|
            insert(client, owner)
            meet(:inserted, 20)
            count = rows(client)
            meet(:looked, 20)
            count
          end
        end

        assert_equal([1], seen.uniq)
        assert_equal(20, rows(connect))
      end
    end

    # A row that one has locked: the others wait for it, and the thread does not.
    def test_those_that_change_one_row_take_turns
      reactor do
        insert(connect, 1)
        clients = Array.new(20) { connect }
        assert_others_run do
          all_at_once(20) { |number| transaction(clients[number]) { |client| add_one_slowly(client) } }
        end

        assert_equal(20, coins(connect, 1))
      end
    end

    private

    # Waits until this number has come here.
    def meet(place, count)
      @met ||= Hash.new(0)
      @met[place] += 1
      sleep(0.002) until @met[place] == count
    end

    def insert(client, owner, coins = 0) = execute(client, "INSERT INTO #{@table} VALUES (#{owner}, #{coins})")
    def coins(client, owner) = number(client, "SELECT coins FROM #{@table} WHERE owner = #{owner}")
    def rows(client) = number(client, "SELECT COUNT(*) FROM #{@table}")

    def add_one_slowly(client)
      before = number(client, "SELECT coins FROM #{@table} WHERE owner = 1 FOR UPDATE")
      sleep(0.002)
      execute(client, "UPDATE #{@table} SET coins = #{before + 1} WHERE owner = 1")
    end
  end
end
