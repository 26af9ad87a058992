# frozen_string_literal: true

# What the job of each engine does, and what its processes say. BENCH_KIND is "threads" or "tasks".

require "net/http"
require "active_record"

module Work
  URL = URI(ENV.fetch("BENCH_URL"))
  TASKS = ENV.fetch("BENCH_KIND") == "tasks"
  CONCURRENCY = Integer(ENV.fetch("BENCH_CONCURRENCY"))

  module_function

  def perform
    Net::HTTP.get(URL)
    insert("done")
  end

  def insert(table)
    ActiveRecord::Base.with_connection { |connection| connection.execute("INSERT INTO #{table} DEFAULT VALUES") }
  end
end
