# frozen_string_literal: true

require "json"
require "support/clients"
require "support/serve_program"
require "support/servers/postgres"

module TestSupport
  # GoodJob in `heddle serve`, with a database for each test. In the body of a contract:
  #
  #   client "pg", server: TestSupport::Servers::Postgres
  #   include TestSupport::GoodJobCase
  module GoodJobCase
    FOLDER = File.join(__dir__, "good_job")
    PROGRAM = File.expand_path("../../exe/heddle", __dir__)

    def setup
      super
      missing = Clients.load("good_job", "good_job/version")
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
    def load_schema(admin)
      admin.exec("CREATE DATABASE blank")

      assert_script(<<~CODE, gems: true, heddle: false, options: %w[-W0], env: environment("blank"))
        require #{File.join(FOLDER, "application").inspect}
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

    def serve
      ServeProgram.new(*ruby_command, "-W1", PROGRAM, "serve", "--directory", FOLDER, "--bind", "tcp://127.0.0.1:0",
                       env: environment(@database)).tap { |site| @sites << site }
    end

    def query(text) = @client.exec(text).values

    # @return [Array<Array>] numbers and facts
    def reports(word)
      query("SELECT number, facts FROM reports WHERE word = '#{word}' ORDER BY number")
        .map { |number, facts| [Integer(number), *JSON.parse(facts)] }
    end

    def wait_for_reports(word, count)
      wait_until("#{count} times #{word.inspect}") { reports(word).size >= count }
      reports(word)
    end

    def let_go = query("INSERT INTO reports (word) VALUES ('go')")

    def assert_each_once(numbers, done) = assert_equal([*numbers], done.map(&:first))
  end
end
