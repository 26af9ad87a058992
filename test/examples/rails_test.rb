# frozen_string_literal: true

# bin/test: takes 15 s, 1 core

require_relative "../test_helper"
require "support/clients"
require "support/serve_program"

# examples/rails under `heddle serve`.
contract "RailsExample" do
  folder = File.expand_path("../../examples/rails", __dir__)
  heddle = File.expand_path("../../exe/heddle", __dir__)
  browser = "/usr/bin/chromium-headless-shell"
  answers = (1..10).map { |number| "Service #{number} has answered after #{number / 10.0} s" }

  heddle_only "it is about tasks"

  define_method(:setup) do
    super()
    missing = { "railties" => "rails", "protocol-rack" => "protocol/rack", "protocol-http1" => "protocol/http1" }
      .find { |gem,| Gem::Specification.find_all_by_name(gem).none? }
    skip("the gem #{missing.first} is not installed (bin/test tries to install it)") if missing
    @server = TestSupport::ServeProgram.new(*ruby_command.grep_v("-w"), heddle, "serve", "-p", "0", "config.ru",
                                            chdir: folder,
                                            env: { "HEDDLE_BACKEND" => backend, "RAILS_ENV" => "production" })
  end

  def teardown
    @server&.close
    super
  end

  define_method(:test_the_parts_come_one_by_one) do
    arrived = {}
    Net::HTTP.start("127.0.0.1", @server.port) do |http|
      http.request_get("/") do |answer|
        answer.read_body do |part|
          part.scan(/Service \d+ has answered after [\d.]+ s/) { |text| arrived[text] = now }
        end
      end
    end

    assert_equal(answers, arrived.keys)
    assert_operator(arrived.values.last - arrived.values.first, :>, 0.45)
    assert_operator(arrived.values.uniq.size, :>, 3)
  end

  define_method(:test_a_browser_shows_the_parts_as_they_come) do
    skip("Debian's package chromium-headless-shell is not installed (bin/test tries to install it)") unless
      File.exist?(browser)
    outcome = run_command(browser, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                          "--user-data-dir=#{tempdir}", "--dump-dom", "http://127.0.0.1:#{@server.port}/",
                          timeout: 60)
    parts = outcome.out.scan(/<p data-arrived="(\d+)">(.*?)<script>/)
    times = parts.map { |time,| Integer(time) }

    assert_equal(answers, parts.map(&:last), outcome.err)
    assert_equal(times.sort, times)
    assert_operator(times.last - times.first, :>, 450)
    assert_operator(times.uniq.size, :>, 3)
  end
end
