# frozen_string_literal: true

# bin/test: takes 40 s, 0.5 of a core

require_relative "../test_helper"
require "support/good_job_case"
require "support/postgres_outages"

# GoodJob in `heddle serve` while its database fails: no job is lost, and requests and jobs go on by themselves.
contract "GoodJobOutages" do
  extend TestSupport::Clients

  client "pg"

  heddle_only "the server is Heddle's"

  include TestSupport::GoodJobCase
  include TestSupport::PostgresOutages

  def setup
    start_server
    super
  end

  def teardown
    super
    stop_server
  end

  attr_reader :database

  # 20 jobs are in the queue before it, and 10 come afterwards. Running jobs run again, or fail, and can be retried.
  TestSupport::PostgresOutages::OUTAGES.each do |name, outage|
    define_method("test_#{name}") do
      site = serve
      20.times { |number| site.get("/ShortJob/#{number}") }
      wait_for_reports("done", 5)
      before = finished
      send(outage)
      @client.reset
      codes = (20...30).map { |number| site.get("/ShortJob/#{number}").code }
      wait_until("the end of all jobs") { finished.size == 30 }
      done = reports("done").map(&:first)

      assert_equal(["200"], codes.uniq)
      assert_equal([*0...30], (done + finished("error IS NOT NULL")).uniq.sort)
      assert_empty(before & done.tally.select { |_, times| times > 1 }.keys)
    end
    once(:"test_#{name}")
  end

  # @return [Array<Integer>] the jobs that have ended, as the database knows
  def finished(condition = "true")
    query("SELECT serialized_params->'arguments'->>0 FROM good_jobs WHERE finished_at IS NOT NULL AND #{condition}")
      .map { |number,| Integer(number) }
  end
end
