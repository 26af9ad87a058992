# frozen_string_literal: true

# Reads a CSV file into a table of PostgreSQL, over a few connections at the same time. The file may be larger than the
# memory: only as many rows are read as are on their way.
#
#   ruby examples/import_csv.rb FILE [TABLE] [DATABASE]
#
# The first line of the file names the columns. The table is made if it is not there, with columns of text. The database
# is a URL such as postgres://me@localhost:5432/shop. It needs the gem pg.

require "csv"
require "heddle"
require "pg"

CONNECTIONS = 4
ROWS = 1000 # that go to the database at once, all of them or none

# A table that rows go into.
class Table
  def initialize(database, name, columns)
    @database = database
    @name = PG::Connection.quote_ident(name)
    @columns = columns.map { |column| PG::Connection.quote_ident(column) }.join(", ")
    @connections = Thread::Queue.new
  end

  # Opens the connections for the block.
  def open(count)
    count.times { @connections << PG.connect(@database) }
    with_connection do |connection|
      connection.exec("CREATE TABLE IF NOT EXISTS #{@name} (#{@columns.gsub(/(?=,|\z)/, " TEXT")})")
    end
    yield self
  ensure
    @connections.pop.close until @connections.empty?
  end

  def insert(rows)
    with_connection do |connection|
      connection.copy_data("COPY #{@name} (#{@columns}) FROM STDIN", PG::TextEncoder::CopyRow.new) do
        rows.each { |row| connection.put_copy_data(row.fields) }
      end
    end
  end

  private

  def with_connection
    connection = @connections.pop # waits until there is one
    yield connection
  ensure
    @connections << connection if connection
  end
end

file, name, database = ARGV
abort "usage: ruby import_csv.rb FILE [TABLE] [DATABASE]" unless file

name ||= File.basename(file, ".*")
begin
  columns = CSV.open(file, &:first) or abort "#{file} is empty"
  batches = CSV.foreach(file, headers: true).each_slice(ROWS)
  progress = ->(done) { $stderr.print("\r#{done * ROWS} rows") }

  Heddle.run do
    Table.new(database || "postgres://localhost/postgres", name, columns).open(CONNECTIONS) do |table|
      Heddle.each(batches, limit: CONNECTIONS, progress: progress) { |rows| table.insert(rows) }
    end
  end
  warn "\n#{file} is in the table #{name}"
rescue SystemCallError, CSV::MalformedCSVError, PG::Error => e
  abort "\n#{e.message}" # what was told as done is in the table
rescue Interrupt
  abort "\nended by Ctrl-C"
end
