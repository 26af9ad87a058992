# frozen_string_literal: true

require_relative "../support/adapters"
require_relative "../support/session"

module Bench
  # The benchmarks of others, from a folder that the user has fetched: as rows, so that they are measured in the same
  # way as ours (bench/run.rb).
  module Others
    # Where the benchmarks are.
    SOURCE = "BENCH_SOURCE"

    module_function

    # What a file of this folder does as a program.
    # @param command [String] as people have typed it
    # @param group [String] its rows
    # @yield to define them, once it is known where the source is
    def run(command, group, arguments)
      place = arguments.index("--source")
      given = arguments.slice!(place, 2) if place
      abort("usage: bin/ruby #{command} --source FOLDER [options of bench/run.rb]") unless given&.at(1)

      ENV[SOURCE] = File.expand_path(given[1])
      Bench.load_all
      yield
      options = Options.new(arguments, defaults: ["--rows", group, "--timeout", "30"])
      report = Session.new(options, command:, talkative: true).run
      puts report
      File.write(options.output, report.to_s(markdown: true)) if options.output
    rescue LoadError, Errno::ENOENT => e
      abort("#{given&.at(1)} is not that project's folder: #{e.message}")
    rescue Interrupt
      abort("stopped")
    end

    # @return [String] a path in the user's folder
    def path(*parts) = File.join(ENV.fetch(SOURCE), *parts)

    # For Group#setup: the children need to know it as well.
    def setup(**) = [{ SOURCE => ENV.fetch(SOURCE) }, {}]
  end
end
