# frozen_string_literal: true

# bin/test: takes 40 s, 0.6 of a core

require_relative "../test_helper"
require "json"
require "support/clients"
require "support/serve_program"
require "support/servers/postgres"

# GoodJob in `heddle serve`: the tasks of requests put jobs into the queue, and threads of GoodJob's run them beside.
contract "GoodJob" do
  extend TestSupport::Clients

  client "pg", server: TestSupport::Servers::Postgres

  heddle_only "the server is Heddle's"

  folder = File.expand_path("../support/good_job", __dir__)
  program = File.expand_path("../../exe/heddle", __dir__)

  def setup
    super
    missing = TestSupport::Clients.load("good_job", "good_job/version")
    skip(missing) if missing
    @sites = []
    @database = "#{name}_#{backend}"
    connected(PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: "postgres")) do |admin|
      load_schema(admin) if admin.exec("SELECT FROM pg_database WHERE datname = 'blank'").ntuples.zero?
      admin.exec("CREATE DATABASE #{@database} TEMPLATE blank")
    end
    @client = PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: @database)
  end

  def teardown
    @sites&.each(&:close)
    @client&.close
    super
  end

  def connected(client)
    yield(client)
  ensure
    client.close
  end

  # GoodJob's own migration, and the table of what jobs have seen, in a database that the others are copies of.
  define_method(:load_schema) do |admin|
    admin.exec("CREATE DATABASE blank")

    assert_script(<<~CODE, gems: true, heddle: false, options: %w[-W0], env: environment("blank"))
      require #{File.join(folder, "application").inspect}
      ActiveRecord::Migration.verbose = false
      path = Gem.loaded_specs["good_job"].full_gem_path
      migration = Dir.glob(path + "/lib/generators/good_job/templates/install/migrations/*").first
      eval(File.read(migration).sub(/<%=.*?%>/, "[8.0]"))
      CreateGoodJobs.migrate(:up)
      ActiveRecord::Schema.define do
        create_table(:reports) { |table| table.string(:word) && table.integer(:number) && table.text(:facts) }
      end
    CODE
  end

  # With a pool of 8 connections.
  def environment(database)
    size = Gem::Specification.find_by_name("activerecord").version < "8.1" ? "pool" : "max_connections"
    { "DATABASE_URL" => "postgresql://heddle@127.0.0.1:#{server.port}/#{database}?#{size}=8",
      "HEDDLE_BACKEND" => backend }
  end

  define_method(:serve) do
    TestSupport::ServeProgram.new(*ruby_command, "-W1", program, "serve", "--directory", folder, "--bind",
                                  "tcp://127.0.0.1:0", env: environment(@database)).tap { |site| @sites << site }
  end

  def query(text) = @client.exec(text).values

  # @return [Array<Array>] numbers and facts
  def reports(word)
    query("SELECT number, facts FROM reports WHERE word = '#{word}' ORDER BY number")
      .map { |number, facts| [Integer(number), *JSON.parse(facts)] }
  end

  def wait_for_reports(word, count)
    wait_until("#{count} times #{word.inspect}") { sleep(0.05) && reports(word).size >= count }
    reports(word)
  end

  def let_go = query("INSERT INTO reports (word) VALUES ('go')")

  def assert_each_once(numbers, done) = assert_equal([*numbers], done.map(&:first))

  # Nothing is left, and nothing has failed.
  def assert_all_finished(count)
    finished = "SELECT count(*), count(error) FROM good_jobs WHERE finished_at IS NOT NULL"
    wait_until("the end of the jobs") { sleep(0.05) && query(finished).dig(0, 0) == count.to_s }

    assert_equal([[count.to_s, "0"]], query(finished))
  end

  # 30 requests at once put their jobs into the queue. Requests and jobs share the pool; the thread that listens has one
  # connection more.
  def test_jobs_of_requests
    site = serve
    threads = Array.new(30) { |number| Thread.new { site.get("/WaitJob/#{number}").code } }

    assert_equal(["200"], threads.map(&:value).uniq)
    wait_for_reports("began", 5)
    let_go
    done = wait_for_reports("done", 30)

    assert_each_once(0...30, done)
    assert_match(/GoodJob::Scheduler/, done.map { |one| one[1] }.uniq.join)
    assert_equal([true], done.map(&:last).uniq, "a job has run in a task")
    assert_operator(connections, :<=, 9)
    assert_all_finished(30)
  end

  def connections
    Integer(query(<<~SQL).dig(0, 0))
      SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    SQL
  end

  # A job that computes holds up no request, and jobs have tasks.
  def test_requests_beside_a_job_that_computes
    site = serve
    path = File.join(tempdir, "over")
    site.get("/ComputeJob#{path}")
    wait_for_reports("computes", 1)
    3.times { |number| site.get("/TasksJob/#{number}") }

    assert_equal([1, 2, 3].flat_map { |part| [part] * 3 }, wait_for_reports("part", 9).map(&:first))
    assert_empty(reports("computed"))
    File.write(path, "")
    wait_for_reports("computed", 1)

    assert_all_finished(4)
  end

  # Five jobs run, and five wait: the next process runs all of them.
  def test_a_kill_loses_no_job
    site = serve
    10.times { |number| site.get("/WaitJob/#{number}") }
    wait_for_reports("began", 5)
    site.signal(:KILL)
    site.wait
    let_go
    serve

    assert_each_once(0...10, wait_for_reports("done", 10))
    assert_all_finished(10)
  end

  # Jobs that end in time end once. The others are run again by the next process, as jobs that have not begun.
  def test_a_process_that_ends_loses_no_job
    site = serve
    2.times { |number| site.get("/WaitJob/#{number}") }
    wait_for_reports("began", 2)
    (2...7).each { |number| site.get("/ShortJob/#{number}") }
    wait_for_reports("began", 5)
    site.signal(:TERM)

    assert_predicate(site.wait, :success?)
    assert_empty(reports("done").map(&:first) & [0, 1])
    let_go
    serve

    assert_each_once(0...7, wait_for_reports("done", 7))
    assert_all_finished(7)
  end

  # It keeps its jobs, and goes on.
  def test_a_process_that_stands_still
    first = serve
    3.times { |number| first.get("/WaitJob/#{number}") }
    wait_for_reports("began", 3)
    first.signal(:STOP)
    second = serve
    let_go
    (3...6).each { |number| second.get("/WaitJob/#{number}") }

    assert_each_once(3...6, wait_for_reports("done", 3))
    first.signal(:CONT)

    assert_each_once(0...6, wait_for_reports("done", 6))
    assert_all_finished(6)
  end
end
