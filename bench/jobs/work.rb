# frozen_string_literal: true

# What the job of each engine does, and what its processes say. BENCH_KIND is "threads", "tasks" or "unsliced".

require "net/http"
require "active_record"

module Work
  URL = URI(ENV.fetch("BENCH_URL"))
  TASKS = ENV.fetch("BENCH_KIND") != "threads"
  SLOW = ENV["BENCH_SLOW"]&.to_i
  CONCURRENCY = Integer(ENV.fetch("BENCH_CONCURRENCY"))

  module_function

  # @param enqueued [Float] when, in seconds since 1970
  def perform(number, enqueued)
    delay = Process.clock_gettime(Process::CLOCK_REALTIME) - enqueued
    return compute if SLOW && (number % SLOW).zero?

    began = now
    Net::HTTP.get(URL)
    insert("done (took, delay) VALUES (#{now - began}, #{delay})")
  end

  def insert(what)
    ActiveRecord::Base.with_connection { |connection| connection.execute("INSERT INTO #{what}") }
  end

  def ready = insert("ready DEFAULT VALUES")

  # For about a second, whatever else runs meanwhile.
  def compute
    10_000.times { fib(20) }
    insert("done DEFAULT VALUES")
  end

  def fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
