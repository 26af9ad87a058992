# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"

# heddle/adapters/graphql: the sources of the Dataloader in tasks.
contract "Graphql" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "graphql"

  def setup
    super
    require "heddle/adapters/graphql"
    require "support/clients/graphql_schema"
    TestSupport::GraphqlSchema.begun.clear
  end

  # Each source waits until the other one has begun, too: one after the other, they would wait for ever.
  def test_sources_run_side_by_side
    [TestSupport::GraphqlSchema, TestSupport::GraphqlSchema::Nonblocking].each do |schema|
      answers = run { Heddle.map(1..3) { ask("{ left right }", schema) } }

      assert_equal([{ "left" => "left 1", "right" => "right 2" }] * 3, answers)
      TestSupport::GraphqlSchema.begun.clear
    end
  end

  def test_keys_are_still_loaded_together
    answer = run { ask("{ a: one(key: 1) b: one(key: 2) c: one(key: 1) }") }

    assert_equal({ "a" => "one 1", "b" => "one 2", "c" => "one 1" }, answer)
    assert_equal([["one", [1, 2]]], TestSupport::GraphqlSchema.begun)
  end

  def test_a_source_that_uses_another_one
    answer = run { ask("{ nested(key: 1) one(key: 2) }") }

    assert_equal({ "nested" => "nested of one 1", "one" => "one 2" }, answer)
  end

  def test_an_error_of_a_source
    result = run { TestSupport::GraphqlSchema.execute("{ failing one(key: 1) }").to_h }

    assert_equal({ "failing" => nil, "one" => "one 1" }, result["data"])
    assert_equal(["no such thing"], result["errors"].map { |error| error["message"] })
  end

  def test_a_cancel_ends_the_sources
    run do
      task = Heddle.spawn { ask("{ slow one(key: 1) }") }
      sleep(0.001) until TestSupport::GraphqlSchema.begun.any? { |name, _| name == "slow" }
      task.cancel.wait

      assert_predicate(task, :cancelled?)
      assert_includes(TestSupport::GraphqlSchema.begun, ["slow", :ended])
      assert_equal({ "one" => "one 1" }, ask("{ one(key: 1) }"))
    end
  end

  def test_outside_of_tasks
    assert_equal({ "one" => "one 1" }, ask("{ one(key: 1) }"))
  end

  private

  def ask(query, schema = TestSupport::GraphqlSchema)
    result = schema.execute(query).to_h

    assert_nil(result["errors"])
    result["data"]
  end
end
