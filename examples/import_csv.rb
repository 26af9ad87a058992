# frozen_string_literal: true

# Reads a CSV file into a table of PostgreSQL, over a few connections at the same time. The file may be larger than the
# memory: the program reads rows only when it can send them.
#
#   ruby examples/import_csv.rb FILE [TABLE] [DATABASE]
#
# The first line of the file names the columns. The table is made if it is not there, with columns of text. The database
# is a URL such as postgres://me@localhost:5432/shop. It needs the gem pg.

require "csv"
require "heddle"
require "optparse"
require "pg"

CONNECTIONS = 4
ROWS = 1000 # for each COPY, which stores all of them or none

# The table that gets the rows, and a pool of connections to its database.
class Table
  def initialize(database, name, columns)
    @name = PG::Connection.quote_ident(name)
    @columns = columns.map { |column| PG::Connection.quote_ident(column) }.join(", ")
    @pool = Heddle::Pool.new(size: CONNECTIONS, broken: PG::Error) { PG.connect(database) }
  end

  def create
    columns = @columns.gsub(/(?=,|\z)/, " TEXT")
    @pool.with { |connection| connection.exec("CREATE TABLE IF NOT EXISTS #{@name} (#{columns})") }
  end

  def insert(rows)
    @pool.with do |connection|
      connection.copy_data("COPY #{@name} (#{@columns}) FROM STDIN", PG::TextEncoder::CopyRow.new) do
        rows.each { |row| connection.put_copy_data(row.fields) }
      end
    end
  end
end

usage = OptionParser.new("usage: ruby import_csv.rb FILE [TABLE] [DATABASE]")
begin
  usage.parse!
  file, name, database = ARGV
  raise ArgumentError, "no file is given" unless file
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end

name ||= File.basename(file, ".*")
begin
  columns = CSV.open(file, &:first) or abort "#{file} is empty"
  batches = CSV.foreach(file, headers: true).each_slice(ROWS)
  progress = ->(done) { $stderr.print("\r#{done * ROWS} rows") }

  Heddle.run do # closes the connections at its end
    table = Table.new(database || "postgres://localhost/postgres", name, columns)
    table.create
    Heddle.each(batches, limit: CONNECTIONS, progress: progress) { |rows| table.insert(rows) }
  end
  warn "\n#{file} is in the table #{name}"
rescue SystemCallError, CSV::MalformedCSVError, PG::Error => e
  abort "\n#{e.message}" # (the rows that the progress has shown are in the table)
rescue Interrupt
  abort "\nended by Ctrl-C"
end
