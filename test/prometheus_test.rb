# frozen_string_literal: true

require_relative "test_helper"
require "heddle/rack"

# The figures in Prometheus' text format: Heddle::Rack::Metrics.
class PrometheusTest < HeddleTest
  LINE = /\A(?<name>[a-z_]+)(?:\{(?<labels>[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*)\})? (?<value>[\d.e+-]+)\n\z/

  # The figures in the text: {"name{labels}" => value}. Each line is as the format wants it.
  def parsed(text)
    family = nil
    text.lines.each_with_object({}) do |line, values|
      if (name = line[/\A# HELP ([a-z_]+) \S.*\.\n\z/, 1])
        family = name
      elsif line.start_with?("#")
        assert_match(/\A# TYPE #{family} (gauge|counter|histogram)\n\z/, line)
      else
        assert_match(LINE, line)
        assert(line.start_with?(family), "#{line} stands below #{family}")
        key, value = line.split

        refute_includes(values, key)
        values[key] = Float(value)
      end
    end
  end

  def figures # rubocop:disable Minitest/TestMethodName
    status, headers, body = Heddle::Rack::Metrics.new.call({})

    assert_equal([200, "text/plain; version=0.0.4; charset=utf-8"], [status, headers["content-type"]])
    parsed(body.join)
  end

  def test_nothing_runs
    values = figures

    assert_equal([0.0], values.select { |name,| name.start_with?("heddle_tasks{") }.values.uniq)
    assert_equal(7, values.count { |name,| name.start_with?("heddle_tasks{") })
    assert_predicate(values["heddle_schedulers"], :zero?)
  end

  def test_tasks_and_latency
    before = figures
    values = Heddle.run do
      3.times { Heddle.spawn(background: true) { sleep } }
      5.times { sleep(0.001) }
      figures
    end

    assert_equal([1.0, 3.0, 1.0], values.values_at("heddle_tasks{state=\"running\"}",
                                                   "heddle_tasks{state=\"sleep\"}", "heddle_schedulers"))
    assert_operator(values["heddle_tasks_started_total"] - before["heddle_tasks_started_total"], :>=, 3)
    buckets = values.select { |name,| name.start_with?("heddle_loop_latency_seconds_bucket") }

    assert_equal(buckets.values.sort, buckets.values)
    assert_equal(count = values["heddle_loop_latency_seconds_count"], buckets.values.last)
    assert_operator(count, :>=, 5)
  end

  # As a program adds its own figures, and joins those of its processes.
  def test_other_figures
    prometheus = Heddle::Prometheus
    jobs = [2, 3].map { |number| prometheus.one("jobs", "gauge", "Jobs that wait.", number) }
    states = prometheus.by_label("jobs_total", "counter", "Jobs by their end.", :end, { failed: 1, done: 2.5 })
    text = prometheus.text(prometheus.merge({ worker: 0 } => [jobs[0], states], { worker: 1 } => [jobs[1]]))

    assert_equal({ "jobs{worker=\"0\"}" => 2.0, "jobs{worker=\"1\"}" => 3.0,
                   "jobs_total{worker=\"0\",end=\"failed\"}" => 1.0,
                   "jobs_total{worker=\"0\",end=\"done\"}" => 2.5 }, parsed(text))
    assert_equal(1, text.scan("# TYPE jobs gauge").size)
  end

  def test_rack_lint
    missing = Gem::Specification.find_all_by_name("rack").empty?
    skip("the gem rack is not here") if missing
    require "rack"
    response = Rack::MockRequest.new(Rack::Lint.new(Heddle::Rack::Metrics.new)).get("/metrics")

    assert_equal(200, response.status)
    parsed(response.body)
  end
end
