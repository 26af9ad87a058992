# frozen_string_literal: true

# bin/test: takes 15 s, 0.5 of a core

require_relative "../test_helper"
require "support/rails/puma"
require "support/serve_program"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq inside of a web server: the requests put jobs into the queue, and a thread beside them runs these.
contract "SidekiqEmbedded" do
  extend TestSupport::SidekiqCase

  folder = File.join(File.dirname(TestSupport::SidekiqCase::APPLICATION), "embedded")
  program = File.expand_path("../../exe/heddle", __dir__)

  define_method(:environment) do
    { "REDIS_URL" => "redis://127.0.0.1:#{server.port}/0", "TEST_MODE" => "heddle", "HEDDLE_BACKEND" => backend }
  end

  define_method(:test_heddle_serve) do
    site = TestSupport::ServeProgram.new(*ruby_command, "-W1", program, "serve", "--directory", folder, "--bind",
                                         "tcp://127.0.0.1:0", env: environment)
    run_jobs { |path| site.get(path) }
    site.signal(:TERM)

    assert_predicate(site.wait, :success?)
    assert_equal(["Wait"] * 5, queued)
  ensure
    site&.close
  end

  define_method(:test_puma) do
    missing = TestSupport::Clients.load("puma", "puma/const")
    skip(missing) if missing

    puma = TestSupport::Puma.new(ruby_command, folder, threads: 5, environment:)
    begin
      run_jobs { |path| puma.get(path) }
    ensure
      puma.stop
    end

    assert_equal(["Wait"] * 5, queued)
  end
  once :test_puma

  # The last five run when the server ends, and are put back.
  def run_jobs
    20.times { |number| yield("/0.1,#{number}") }
    done = wait_for_reports("done", 20)

    assert_equal([*0...20], done.map { |one| one[1] }.sort)
    assert_equal(["sidekiq.heddle"], done.map { |one| one[2] }.uniq)
    5.times { |number| yield("/60,#{number}") }
    wait_for_reports("began", 25)
  end
end
