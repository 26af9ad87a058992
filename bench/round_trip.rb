# frozen_string_literal: true

# Where the CPU time of an operation goes, in the kernel, in Ruby and in Heddle: bin/ruby bench/round_trip.rb --help

require "etc"
require "open3"
require "optparse"
require "rbconfig"
require "tmpdir"
require_relative "support/environment"
require_relative "support/registry"

module Bench
  # Runs rows under perf, and counts its samples by the file that the code is in.
  module RoundTrip
    HELP = <<~TEXT
      bin/ruby bench/round_trip.rb           samples rows of bench/run.rb with `perf`, on each backend
          --rows socketpair,echo             these rows
          --output FILE                      writes the table to a file as well
    TEXT
    ROWS = %w[spawn queue socketpair gets echo accept file].freeze
    BACKENDS = %w[uring epoll].freeze
    # Samples a second.
    FREQUENCY = 4999
    PROGRAM = <<~RUBY
      $LOAD_PATH.unshift(ARGV.fetch(0))
      require ARGV.fetch(1)
      require ARGV.fetch(2)
      require "heddle"
      Bench.load_all
      row = Bench.rows.fetch(ARGV.fetch(3))
      2.times { row.work.call(Bench.peers.fetch("heddle").adapter.call, row.operations) }
      exit!(true)
    RUBY

    module_function

    def run(arguments)
      rows = ROWS
      output = nil
      OptionParser.new do |parser|
        parser.on("--rows LIST", Array) { |names| rows = names }
        parser.on("--output FILE") { |file| output = file }
        parser.on("-h", "--help") { puts(HELP) || exit }
      end.parse!(arguments)
      text = report(rows)
      puts(text)
      File.write(output, text) if output
    end

    def report(rows)
      lines = rows.flat_map { |row| BACKENDS.map { |backend| line(row, backend) } }
      facts = { "Ruby" => RUBY_DESCRIPTION, "Heddle" => Environment.heddle,
                "machine" => "#{Etc.nprocessors} x #{Environment.processor}", "calls" => Environment.calls(nil) }
      <<~TEXT
        #{facts.map { |name, fact| "#{"#{name}:".ljust(9)}#{fact}" }.join("\n")}

        | | unit | kernel | Ruby | Heddle |
        |---|---|---|---|---|
        #{lines.join("\n")}

        Per cent of the samples of perf. The C library and the code that YJIT makes count as Ruby.
      TEXT
    end

    def line(row, backend)
      Bench.load_all
      shares = shares(samples(row, backend))
      "| #{Bench.rows.fetch(row).title}, #{backend} | % | #{shares.map { |share| format("%.1f", share) }.join(" | ")} |"
    end

    # @param by_file [Array(String, Float)] the files, and the per cent of the samples in their code
    # @return [Array<Float>] per cent of the kernel, Ruby and Heddle
    def shares(by_file)
      kernel = by_file.sum { |file, share| file.start_with?("[kernel", "[guest.kernel") ? share : 0 }
      heddle = by_file.sum { |file, share| file.include?("heddle_native") ? share : 0 }
      [kernel, by_file.sum(&:last) - kernel - heddle, heddle]
    end

    # @return [Array(String, Float)]
    def samples(row, backend) = Dir.mktmpdir { |folder| sample(row, backend, File.join(folder, "samples")) }

    def sample(row, backend, file)
      program = [RbConfig.ruby, "--yjit", "-e", PROGRAM, File.expand_path("../lib", ROOT),
                 File.join(ROOT, "support/registry.rb"), File.join(ROOT, "support/adapters.rb"), row]
      command("perf", "record", "-q", "-e", "cpu-clock", "-F", FREQUENCY.to_s, "-o", file, "--", *program,
              env: { "HEDDLE_BACKEND" => backend })
      command("perf", "report", "-i", file, "--sort", "dso", "--stdio", "-q", "-w", "0,200").lines
        .filter_map { |line| line.match(/([\d.]+)%\s+(\S.*)/)&.captures }
        .map { |share, name| [name.strip, Float(share)] }
    end

    def command(*command, env: {})
      said, errors, status = Open3.capture3(env, *command)
      abort("#{command.first(2).join(" ")}: #{errors}") unless status.success?

      said
    rescue Errno::ENOENT
      abort("perf is not installed (Debian's package linux-perf)")
    end
  end
end

Bench::RoundTrip.run(ARGV) if $PROGRAM_NAME == __FILE__
