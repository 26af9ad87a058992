# frozen_string_literal: true

require "json"
require "support/clients"

module TestSupport
  # Questions to ActiveRecord on each database. In the body of a contract:
  #
  #   extend TestSupport::ActiveRecordCase
  #   active_record "postgresql", driver: "pg", server: Servers::Postgres, database: "postgres"
  #
  # Each version runs once in a process of its own (support/active_record/program.rb), and the tests look at what came
  # out.
  module ActiveRecordCase
    include Clients

    VERSIONS = { "7_2" => "~> 7.2.0", "8" => "~> 8.0" }.freeze
    PROGRAM = File.expand_path("../active_record/program.rb", __dir__)

    # @param adapter [String] ActiveRecord's name of it
    # @param driver [String] the gem
    # @param server [Class, nil]
    # @param settings [Hash] for ActiveRecord::Base.establish_connection
    def active_record(adapter, driver:, server: nil, **settings)
      client(driver, server: server)
      include Questions

      define_method(:settings) { { adapter: adapter, **settings } }
      outcomes = {}
      # SQLite computes and does not wait; a server has locks for rows.
      checks = Questions.private_instance_methods(false).grep(/\Acheck_/) -
               [server ? :check_a_busy_writer : :check_an_interrupted_begin]
      define_method(:outcomes) { outcomes }
      VERSIONS.each do |name, requirement|
        checks.each do |check|
          test = define_method("#{check.to_s.sub("check", "test")}_#{name}") { send(check, outcome(requirement)) }
          once(test) unless name == VERSIONS.keys.last
        end
      end
    end

    # The tests, one for each version.
    module Questions
      NOTHING_LEFT = { busy: 0, dead: 0, waiting: 0 }.freeze

      def setup
        super
        heddle_only("it is about tasks")
      end

      private

      # 200 tasks over 10 connections.
      def check_many_tasks(outcome)
        many = outcome.fetch(:many_tasks)

        assert_equal([*0...200], many[:answers])
        assert_equal([*1..200], many[:numbers])
        # A connection is made while all others answer.
        server ? assert_equal(10, many[:connections]) : assert_operator(many[:connections], :<=, 10)

        assert_nothing_left(many)
      end

      def check_the_block_of_a_run_is_in_the_transaction(outcome)
        block = outcome.fetch(:block_and_task)

        assert_equal([0, 0, 3], block[:seen])
        assert_empty(block[:numbers])
        assert_nothing_left(block)
      end

      def check_transactions_are_isolated(outcome)
        transactions = outcome.fetch(:transactions)

        assert_equal((0...40).select(&:even?).flat_map { |n| [n, n + 100] }.sort, transactions[:numbers])
        assert_equal({ IOError: 10 }, transactions[:errors])
        assert_nothing_left(transactions)
      end

      def check_cancelled_tasks_leave_nothing(outcome)
        cancels = outcome.fetch(:cancels)

        assert_nothing_left(cancels[:left])
        assert_equal([*0...200], cancels[:answers])
        assert(cancels[:whole], "a part of a transaction is there")
        assert_operator(cancels[:connections], :<=, 10)
        assert_nothing_left(cancels)
        assert_operator(cancels[:cancelled], :>, 100) if server
      end

      def check_checkout_timeouts(outcome)
        timeouts = outcome.fetch(:checkout_timeouts)

        assert_equal(["ActiveRecord::ConnectionTimeoutError"], timeouts[:early])
        assert_equal([*0...10], timeouts[:late])
        assert_nothing_left(timeouts)
      end

      def check_leases_end_with_their_tasks(outcome)
        assert_nothing_left(outcome.fetch(:leases))
      end

      def check_what_ends_a_transaction_rolls_it_back(outcome)
        endings = outcome.fetch(:endings)

        assert_empty(endings.reject { |_, left| left == { rows: 0, **NOTHING_LEFT } })
        assert_equal(server ? 10 : 5, endings.size)
      end

      # The next one who gets the connection is in no transaction.
      def check_an_interrupted_begin(outcome)
        begun = outcome.fetch(:interrupted_begin)

        assert_equal([2], begun[:numbers])
        assert_nothing_left(begun)
      end

      # One that waits for another one's lock does not hold up the others.
      def check_a_busy_writer(outcome)
        writer = outcome.fetch(:busy_writer)

        assert(writer[:waited])
        assert_equal([1, 2], writer[:numbers])
        assert_nothing_left(writer)
      end

      def assert_nothing_left(stat) = assert_equal(NOTHING_LEFT, stat.slice(*NOTHING_LEFT.keys))

      def outcome(requirement)
        unless Gem::Specification.find_all_by_name("activerecord", requirement).any?
          skip("ActiveRecord #{requirement} is not installed (bin/test tries to install it)")
        end

        # It says why it has failed; pg also warns of what ActiveRecord does after an interrupted COMMIT.
        outcome = outcomes[requirement] ||= run_program(requirement)

        assert_predicate(outcome, :success?, outcome.err)
        JSON.parse(outcome.out, symbolize_names: true)
      end

      def run_program(requirement)
        place = server ? { host: "127.0.0.1", port: server.port } : { database: "#{tempdir}/sqlite3" }
        config = JSON.generate({ **settings, **place })
        run_command(*ruby_command, "-W0", PROGRAM, requirement, backend, config)
      end
    end
  end
end
