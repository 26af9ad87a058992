# frozen_string_literal: true

require "optparse"
require "heddle"
require_relative "loads"

module Soak
  # Runs the loads, stops them now and then to measure, and judges the figures.
  class Run
    # What grew by more than this part and that much, from the middle third of the time to the last, has leaked.
    ALLOWED = { rss_kb: [0.05, 8000], objects: [0.01, 2000], descriptors: [0, 0], fibers: [0, 0], armed: [0, 0],
                timers: [0, 0] }.freeze
    # A load whose figures have grown goes on for this multiple of the time: memory is taken in steps of megabytes (a
    # new arena of malloc, pages of Ruby's heap), and on a busy machine something may end late. A leak goes on growing,
    # a step does not.
    LONGER = 3
    COLUMNS = { seconds: 8, operations: 12, rss_kb: 10, objects: 10, descriptors: 13, threads: 9, fibers: 8, armed: 7,
                timers: 8 }.freeze

    def initialize(seconds:, samples:, workers:, loads:, backend: nil)
      @seconds = seconds
      @samples = samples
      @workers = workers
      @names = loads
      @backend = backend
      @operations = Hash.new(0)
      @idle = 0
      @gate = nil
    end

    # @return [Boolean] did everything stay flat?
    def call
      rows = Heddle.run(backend: @backend) { soak }
      puts "operations: #{@operations.map { |name, count| "#{name} #{count}" }.join(", ")}"
      grown = grown(rows).map { |column| growth(rows, column) }
      puts grown.empty? ? "flat: nothing has grown" : grown
      grown.empty?
    end

    private

    def soak
      puts "Heddle #{Heddle::VERSION} (#{Fiber.scheduler.backend}), Ruby #{RUBY_VERSION}, pid #{Process.pid}, " \
           "#{@seconds} s"
      puts COLUMNS.map { |name, width| name.to_s.rjust(width) }.join
      @loads = Loads.new
      tasks = @names.flat_map { |name| Array.new(@workers) { Heddle.spawn(name: name.to_s) { work(name) } } }
      @started = now
      rows = measured(tasks.size)
      tasks.each(&:cancel).each(&:wait)
      @loads.close
      rows
    end

    def measured(workers)
      rows = []
      LONGER.times do
        @samples.times { rows << sample(workers) }
        break if grown(rows.last(@samples)).empty?
      end
      rows.last(@samples)
    end

    def grown(rows) = ALLOWED.keys.select { |column| growth(rows, column) }

    def work(name)
      loop do
        wait_at_gate if @gate
        @loads.call(name)
        @operations[name] += 1
      end
    end

    def wait_at_gate
      @idle += 1
      @gate.pop
      @idle -= 1
    end

    def sample(workers)
      sleep(@seconds.fdiv(@samples))
      @gate = Thread::Queue.new
      sleep(0.002) until @idle == workers
      sleep(0.05) # what ends by itself ends
      row = measure
      puts COLUMNS.map { |name, width| row.fetch(name).to_s.rjust(width) }.join
      $stdout.flush
      @gate.close
      @gate = nil
      row
    end

    def measure
      3.times { GC.start }
      counts = Fiber.scheduler.__send__(:counts)
      { seconds: (now - @started).round, operations: @operations.values.sum,
        rss_kb: Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1]), objects: GC.stat(:heap_live_slots),
        descriptors: Dir.children("/proc/self/fd").size, threads: Thread.list.size, fibers: Fiber.scheduler.size,
        armed: counts[:armed], timers: counts[:timers] }
    end

    # By the least figure of each third: what was high for a moment has not leaked.
    def growth(rows, column)
      part = rows.size / 3
      middle = rows[part, part].map { |row| row[column] }.min
      last = rows.last(part).map { |row| row[column] }.min
      share, much = ALLOWED.fetch(column)
      "LEAK: #{column} grew from #{middle} to #{last}" if last > middle + [middle * share, much].max
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

options = { seconds: 60.0, samples: 12, workers: 3, loads: Soak::Loads::ALL }
OptionParser.new do |parser|
  parser.banner = "bin/soak: works for a while; exits with 1 when memory, objects or descriptors have grown"
  parser.on("--seconds N", Float, "how long (default 60)") { |value| options[:seconds] = value }
  parser.on("--samples N", Integer, "rows of the table (default 12, 6 at least)") { |v| options[:samples] = [v, 6].max }
  parser.on("--workers N", Integer, "tasks per kind of operation (default 3)") { |value| options[:workers] = value }
  parser.on("--backend NAME", "uring, epoll or poll (default: the best there is)") { |value| options[:backend] = value }
  parser.on("--only NAMES", "of: #{Soak::Loads::ALL.join(",")}") { |v| options[:loads] = v.split(",").map(&:to_sym) }
end.parse!
unknown = options[:loads] - Soak::Loads::ALL - Soak::Loads::LEAKS
abort "there is no #{unknown.join(", ")}" unless unknown.empty?

exit(Soak::Run.new(**options).call)
