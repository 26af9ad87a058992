# frozen_string_literal: true

# bin/test: takes 8 s, 0.6 of a core

require "test_helper"
require_relative "bench_case"

# bench/others: the benchmarks of other projects, which are not part of this repository. What they look like is copied
# in small here.
class OthersBenchTest < BenchCase
  OTHERS = File.join(ROOT, "bench", "others")
  OPTIONS = %w[--peers heddle-epoll --rounds 1 --no-install].freeze

  CARBON = <<~RUBY
    module Bench
      WORKLOADS = { "short_sleep" => { defaults: { concurrency: 4, iterations: 5 }, metric: "sleeps_per_second",
                                       unit: "slp/s" } }
      module Workloads; end
      def self.classify(key) = key.split("_").map(&:capitalize).join
    end
  RUBY

  WORKLOAD = <<~RUBY
    class Bench::Workloads::ShortSleep
      def call(_scheduler, options)
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        options[:concurrency].times { Fiber.schedule { options[:iterations].times { sleep(0.001) } } }
        Fiber.scheduler.run
        { "sleeps_per_second" => 20 / (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) }
      end
    end
  RUBY

  URING = <<~RUBY
    require_relative "./common"
    ITERATIONS = 2000
    class UMBenchmark
      def do_scheduler(scheduler, ios)
        reader, writer = IO.pipe
        ios << reader << writer
        Fiber.schedule { ITERATIONS.times { writer.write("x") } }
        Fiber.schedule { ITERATIONS.times { reader.readpartial(1) } }
      end
    end
  RUBY

  def test_carbon_fibers_workloads
    source = folder("benchmarks/lib/bench.rb" => CARBON, "benchmarks/lib/bench/workloads/short_sleep.rb" => WORKLOAD)
    outcome = others("carbon_fiber", source)

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(%r{short_sleep .*own / slp .* [\d.]+ ±}, outcome.out)
  end

  def test_uringmachines_benchmarks
    source = folder("benchmark/bm_io_pipe.rb" => URING, "benchmark/common.rb" => "raise 'this is not loaded'")
    outcome = others("uringmachine", source, "--rows", "um_io_pipe")

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(%r{bm_io_pipe .*wall / run .* [\d.]+ ±}, outcome.out)
    assert_match(%r{the same, CPU time .*cpu / run .* [\d.]+ ±}, outcome.out)
  end

  def test_a_folder_with_something_else
    %w[carbon_fiber uringmachine].each do |name|
      outcome = others(name, tempdir)

      refute_predicate(outcome, :success?)
      assert_match(/is not that project's folder/, outcome.err)
    end
  end

  def test_no_folder
    outcome = run_command(RbConfig.ruby, File.join(OTHERS, "carbon_fiber.rb"))

    assert_match(%r{\Ausage: bin/ruby bench/others/carbon_fiber\.rb --source FOLDER}, outcome.err)
  end

  private

  def others(name, source, *)
    run_command(RbConfig.ruby, File.join(OTHERS, "#{name}.rb"), "--source", source, *OPTIONS, *)
  end

  def folder(files)
    tempdir.tap do |root|
      files.each do |name, text|
        FileUtils.mkdir_p(File.dirname(File.join(root, name)))
        File.write(File.join(root, name), text)
      end
    end
  end
end
