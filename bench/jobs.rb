# frozen_string_literal: true

# Engines for jobs, with threads and with tasks: bin/ruby bench/jobs.rb --help

require "etc"
require "optparse"
require_relative "support/environment"
require_relative "jobs/measurement"

module Bench
  # Each job waits for an HTTP server, and inserts a row with one query. The servers are real ones, started for this.
  module Jobs
    HELP = <<~TEXT
      bin/ruby bench/jobs.rb                       10,000 jobs with Sidekiq, 2,000 with Solid Queue
          --engine sidekiq      or solid_queue: this one alone
          --jobs 500            so many
          --modes threads:25,tasks:500
          --processes 1,2       with so many processes at a time
          --wait 0.05           seconds that the HTTP server takes
          --slow 100            each 100th job computes for about a second instead, and the table has the times of
                                the others. The mode unsliced has tasks without time slices
          --pace 200            this number of jobs comes in a second, and the table says after how long they start;
                                without it all come at once
          --output FILE         writes the tables to a file as well
    TEXT
    ENGINES = { "sidekiq" => 10_000, "solid_queue" => 2_000 }.freeze
    MODES = %w[threads:10 threads:25 threads:100 threads:500 tasks:500].freeze

    Options = Struct.new(:engines, :jobs, :modes, :processes, :wait, :output, :slow, :pace)

    module_function

    def run(arguments)
      options = parse(arguments)
      load = Environment.load
      text = options.engines.map { |engine| table(engine, options) }.join("\n")
      File.write(options.output, "#{facts(load)}\n#{text}") if options.output
    end

    def facts(load)
      facts = { "Ruby" => RUBY_DESCRIPTION, "Heddle" => Environment.heddle, "engines" => versions,
                "machine" => "#{Etc.nprocessors} x #{Environment.processor}",
                "load" => "#{load} before, #{Environment.load} after" }
      facts.map { |name, fact| "#{"#{name}:".ljust(9)}#{fact}\n" }.join
    end

    def versions
      %w[sidekiq solid_queue activerecord pg].map { |name| "#{name} #{Gem::Specification.find_by_name(name).version}" }
        .join(", ")
    end

    def parse(arguments)
      options = Options.new(ENGINES.keys, nil, MODES, [1, 2], 0.05, nil)
      OptionParser.new do |parser|
        parser.on("--engine NAME", ENGINES.keys) { |name| options.engines = [name] }
        parser.on("--jobs N", Integer) { |count| options.jobs = count }
        parser.on("--modes LIST", Array) { |modes| options.modes = modes }
        parser.on("--processes LIST", Array) { |numbers| options.processes = numbers.map { |text| Integer(text) } }
        parser.on("--wait SECONDS", Float) { |seconds| options.wait = seconds }
        parser.on("--slow N", Integer) { |number| options.slow = number }
        parser.on("--pace N", Float) { |number| options.pace = number }
        parser.on("--output FILE") { |file| options.output = file }
        parser.on("-h", "--help") { puts(HELP) || exit }
      end.parse!(arguments)
      options
    rescue OptionParser::ParseError => e
      abort(e.message)
    end

    def head(engine, jobs, options)
      times = ["HTTP of the others: median ms", "p99 ms", "longest ms"] if options.slow
      delays = ["started after: median ms", "p99 ms", "longest ms"] if options.pace
      columns = ["mode", "processes", "jobs/s", "CPU ms / job", "memory MB", "database connections",
                 "Redis connections", *times, *delays].join(" | ")
      slow = "; but each #{options.slow}th computes for about a second" if options.slow
      slow = "#{slow}; #{options.pace.round} of them come in a second" if options.pace
      wait = (options.wait * 1000).round
      ["#{engine}, #{jobs} jobs, each waits #{wait} ms for HTTP and does one query#{slow}:", "",
       "| #{columns} |", "|#{"---|" * (columns.count("|") + 1)}"]
    end

    # @return [String] printed line by line
    def table(engine, options)
      jobs = options.jobs || ENGINES.fetch(engine)
      lines = head(engine, jobs, options)
      puts(lines)
      options.processes.product(options.modes).each do |processes, mode|
        kind, concurrency = mode.split(":")
        figures = Measurement.new(engine, kind, Integer(concurrency), processes, jobs, options.wait,
                                  **options.to_h.slice(:slow, :pace)).run
        lines << "| #{["#{kind} #{concurrency}", processes, *figures].join(" | ")} |"
        puts(lines.last)
      end
      "#{lines.join("\n")}\n"
    end
  end
end

Bench::Jobs.run(ARGV) if $PROGRAM_NAME == __FILE__
