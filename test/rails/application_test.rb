# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "support/clients"
require "support/rails/puma"
require "support/servers/nginx"
require "support/servers/postgres"

# A Rails application under Puma: each request makes ten HTTP calls and three queries at once (support/rails/app).
contract "RailsApplication" do
  extend TestSupport::Clients

  client "pg", server: TestSupport::Servers::Postgres
  FOLDER = File.expand_path("../support/rails/app", __dir__) unless defined?(FOLDER)
  GEMS = { "railties" => "~> 8.0", "activerecord" => "~> 8.0", "puma" => ">= 0" }.freeze unless defined?(GEMS)

  def before_setup
    @nginx = TestSupport::Servers::Nginx.start unless TestSupport::Servers::Nginx.missing || backend_missing
    super
  end

  heddle_only "it is about tasks"

  def setup
    super
    missing = GEMS.find { |name, requirement| Gem::Specification.find_all_by_name(name, requirement).none? }
    skip("the gem #{missing.first} is not installed (bin/test tries to install it)") if missing
    skip(TestSupport::Servers::Nginx.missing) unless @nginx
    connect do |one|
      one.exec("SET client_min_messages = error; DROP TABLE IF EXISTS visits;" \
               "CREATE TABLE visits (id serial, name text)")
    end
  end

  def connect(&)
    PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: "postgres", &)
  end

  def environment(**settings)
    url = "postgresql://heddle@127.0.0.1:#{server.port}/postgres?pool=40&checkout_timeout=60&reaping_frequency=0"
    { "APP_DATABASE" => url, "APP_HTTP" => @nginx.port.to_s, "APP_ISOLATION" => "fiber", "HEDDLE_BACKEND" => backend,
      **settings.to_h { |name, value| ["APP_#{name.upcase}", value] } }
  end

  def with_puma(folder = FOLDER, **settings)
    puma = TestSupport::Puma.new(ruby_command, folder, threads: 20, environment: environment(**settings))
    yield puma
  rescue RuntimeError => e
    flunk("#{e.message}\n#{puma&.said}")
  ensure
    puma&.stop
  end

  def page(puma, number, rollback: false)
    puma.get("/page?user=user#{number}&zone=#{number.even? ? "Berlin" : "Tokyo"}#{"&rollback=1" if rollback}")
  end

  def assert_page(page, number)
    user = "user#{number}"
    here = { user: user, zone: number.even? ? "Berlin" : "Tokyo", locale: "de" }

    assert_equal([*"0".."9"], page[:answers])
    assert_equal(["0 #{user}", "1 #{user}", "2 #{user}"], page[:rows])
    assert_equal({ **here, own_visits: 1, transaction: true }, page[:block])
    assert_equal({ **here, own_visits: 0, transaction: false }, page[:task])
  end

  def assert_nothing_left(puma)
    assert_equal({ busy: 0, dead: 0, waiting: 0 }, puma.get("/state?zone=UTC")[:stat].slice(:busy, :dead, :waiting))
  end

  # No call and no query is answered before all of the request wait for their answers.
  def assert_at_once(puma)
    waiting = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    connect do |one|
      one.exec("SELECT pg_advisory_lock(7)")
      page = @nginx.paused do
        Thread.new { page(puma, 0, rollback: true) }.tap do
          wait_until("10 calls and 3 queries at once", timeout: 25) do
            @nginx.unread == 10 && one.exec(waiting).getvalue(0, 0) == "3"
          end
        end
      end
      one.exec("SELECT pg_advisory_unlock(7)")

      assert_page(page.value, 0)
    end
  end

  def test_twenty_requests_at_once
    with_puma do |puma|
      assert_at_once(puma)
      pages = (1..20).map { |number| Thread.new { page(puma, number, rollback: number > 15) } }.map(&:value)

      pages.each.with_index(1) { |page, number| assert_page(page, number) }
      assert_nothing_left(puma)
      assert_equal((1..15).map { |number| "user#{number}" }.sort, puma.get("/state?zone=UTC")[:visits])
      refute_includes(puma.said, "heddle")
    end
  end

  # A class is loaded anew while requests have tasks.
  def test_reloading
    folder = File.join(tempdir, "app")
    FileUtils.cp_r(FOLDER, folder)
    with_puma(folder, reloading: "1") do |puma|
      assert_page(page(puma, 1, rollback: true), 1)
      pages = Array.new(4) { |number| Thread.new { page(puma, number, rollback: true) } }
      change(File.join(folder, "app/models/visit.rb"), '"first"', '"second"')

      pages.each_with_index { |page, number| assert_page(page.value, number) }
      again = page(puma, 7, rollback: true)

      assert_page(again, 7)
      assert_equal("second", again[:edition])
      assert_nothing_left(puma)
    end
  end

  def change(path, old, new)
    sleep(0.1) # they have begun
    File.write(path, File.read(path).sub(old, new))
  end

  def boot(**settings)
    code = "load '#{FOLDER}/application.rb'; p inherits: Heddle::Rails.inherit_current"
    variables = { "RAILS_ENV" => "production", **environment(**settings) }
    outcome = run_command(*ruby_command, "-W1", "-e", code, env: variables)

    assert_predicate(outcome, :success?, outcome.err)
    outcome.out
  end

  once def test_isolation_by_thread_is_told_at_boot
    said = boot(isolation: "thread", inherit: "false")

    assert_equal(1, said.scan("heddle: config.active_support.isolation_level is :thread").size)
    assert_includes(said, "config.active_support.isolation_level = :fiber in config/application.rb")
    assert_match(/inherits(=>|: )false/, said)
  end
end
