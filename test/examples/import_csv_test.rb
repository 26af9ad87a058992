# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/examples"
require "support/servers/postgres"

# With a PostgreSQL.
contract "ImportCsvExample" do
  extend TestSupport::Clients

  client "pg", server: TestSupport::Servers::Postgres
  include TestSupport::Examples

  def database = "postgres://heddle@127.0.0.1:#{server.port}/postgres"

  # A name that is nobody else's, and needs to be quoted.
  def table = @table ||= "#{name} \"#{backend}\""

  def import(text)
    file = File.join(tempdir, "rows.csv")
    File.write(file, text)
    run_example("import_csv", file, table, database)
  end

  def query(sql)
    connection = PG.connect(database)
    connection.exec(sql.sub("IMPORTED", PG::Connection.quote_ident(table))).values
  ensure
    connection&.close
  end

  def test_imports_a_large_file
    rows = (1..20_500).map { |number| "#{number},\"name, #{number}\",\n" }
    program = import("id,full name,note\n#{rows.join}")

    assert_predicate(program.status, :success?, program.err)
    assert_includes(program.err, "\r20000 rows")
    assert_equal([%w[20500 20500 210135250]],
                 query("SELECT count(*), count(DISTINCT \"full name\"), sum(id::int) FROM IMPORTED WHERE note IS NULL"))
    assert_equal([["name, 7"]], query("SELECT \"full name\" FROM IMPORTED WHERE id = '7'"))
  end

  def test_a_broken_row_ends_it
    program = import("id,name\n1,Ann\n2,\"Bob\n")

    assert_equal(1, program.status.exitstatus)
    assert_match(/Unclosed quoted field in line 3/, program.err)
    assert_equal([["0"]], query("SELECT count(*) FROM IMPORTED"))
  end

  def test_a_refused_row_ends_it
    import("id,name\n1,Ann\n")
    query("ALTER TABLE IMPORTED ADD CONSTRAINT short CHECK (length(name) < 5)")
    program = import("id,name\n2,Bob\n3,Robert\n")

    assert_equal(1, program.status.exitstatus)
    assert_includes(program.err, "violates check constraint \"short\"")
    assert_equal([["1"]], query("SELECT count(*) FROM IMPORTED"))
  end

  def test_no_file_and_no_database
    assert_includes(run_example("import_csv", "/no/such/file").err, "No such file or directory")
    file = File.join(tempdir, "rows.csv")
    File.write(file, "id\n1\n")
    program = run_example("import_csv", file, table, "postgres://127.0.0.1:1/none")

    assert_equal(1, program.status.exitstatus)
    assert_includes(program.err, "Connection refused")
  end
end
