# frozen_string_literal: true

require_relative "test_helper"
require "support/clients"

# require "heddle/opentelemetry": the context of OpenTelemetry across spawn, with its own gems.
contract "OpenTelemetry" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "opentelemetry-sdk", file: "opentelemetry/sdk"

  def setup
    super
    require "heddle/opentelemetry"
    @exporter = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
    provider = OpenTelemetry::SDK::Trace::TracerProvider.new
    provider.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(@exporter))
    @tracer = provider.tracer("test")
  end

  # {name of a span => name of its parent}
  def parents
    spans = @exporter.finished_spans
    spans.to_h { |span| [span.name, spans.find { |other| other.span_id == span.parent_span_id }&.name] }
  end

  def test_a_span_of_a_task_is_a_child_of_the_spawners
    @tracer.in_span("outside") do
      run do
        @tracer.in_span("request") do
          Heddle.map([1, 2, 3]) { |n| @tracer.in_span("call #{n}") { sleep(0.001 * n) } }
        end
      end
    end

    assert_equal({ "outside" => nil, "request" => "outside", "call 1" => "request", "call 2" => "request",
                   "call 3" => "request" }, parents)
    assert_equal(1, @exporter.finished_spans.map(&:trace_id).uniq.size)
  end

  def test_tasks_do_not_see_what_the_others_do
    run do
      @tracer.in_span("a") do
        task = Heddle.spawn { @tracer.in_span("b") { sleep(0.01) } }
        @tracer.in_span("c") { sleep(0.005) }
        task.value
        @tracer.in_span("d") { Heddle.spawn { Heddle.spawn { @tracer.in_span("e") { sleep(0) } } } }
      end
    end

    assert_equal({ "a" => nil, "b" => "a", "c" => "a", "d" => "a", "e" => "d" }, parents)
  end

  def test_background_tasks_and_offloaded_blocks
    run do
      @tracer.in_span("a") do
        Heddle.spawn(background: true) { @tracer.in_span("b") { sleep(0) } }.value
        Heddle.offload { @tracer.in_span("c") { nil } }
        Heddle.spawn { @tracer.in_span("d") { Heddle.offload { @tracer.in_span("e") { nil } } } }.value
      end
      Heddle.offload { @tracer.in_span("f") { nil } }
    end

    assert_equal({ "a" => nil, "b" => "a", "c" => "a", "d" => "a", "e" => "d", "f" => nil }, parents)
  end

  def test_a_task_that_fails_or_is_cancelled
    run do
      @tracer.in_span("a") do
        failing = Heddle.spawn(isolated: true) { @tracer.in_span("fails") { raise "failed" } }
        assert_raises(RuntimeError) { failing.value }
        Heddle.spawn { @tracer.in_span("sleeps") { sleep } }.tap { sleep(0.001) }.cancel
      end
    end

    assert_equal({ "a" => nil, "fails" => "a", "sleeps" => "a" }, parents)
    assert_same(OpenTelemetry::Context::ROOT, OpenTelemetry::Context.current)
  end

  def test_no_span
    run { Heddle.spawn { assert_same(OpenTelemetry::Context::ROOT, OpenTelemetry::Context.current) }.value }
  end
end
