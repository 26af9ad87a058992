# frozen_string_literal: true

# bin/test: takes 30 s, 0.5 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq, fetch_reliably: a Redis that does not do what it should.
contract "SidekiqReliable" do
  extend TestSupport::SidekiqCase

  def teardown
    redis("REPLICAOF", "NO", "ONE") if @redis
    redis("CONFIG", "SET", "min-replicas-to-write", 0) if @redis
    redis("CONFIG", "SET", "maxmemory", 0) if @redis
    super
  end

  def gate = @gate ||= File.join(tempdir, "gate")

  def open_gate = File.write(gate, "")

  def working = redis("KEYS", "heddle:working:*").sum { |list| redis("LLEN", list) }

  # Redis does not write at the moment at which the job ends. It is taken down later, so that it does not run again.
  def test_an_acknowledgement_that_fails
    file = File.join(tempdir, "done")
    first = start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    push("Write", file, gate)
    wait_until("its start") { working == 1 }
    redis("CONFIG", "SET", "min-replicas-to-write", 1)
    open_gate
    wait_until("the first try") { log_of(first).include?("A job is done, which Redis does not take down") }

    assert_equal(1, working)
    redis("CONFIG", "SET", "min-replicas-to-write", 0)
    wait_until("the next one") { working.zero? }

    assert_predicate(stop(first), :success?)
    start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    push("Write", file)
    wait_until("the end of another job") { File.readlines(file).size >= 2 && working.zero? }

    assert_equal(["done\n"] * 2, File.readlines(file))
    assert_empty(queued)
  end

  # The process ends before Redis writes again, and when it ends, Redis does: it is done, and not pushed back.
  def test_a_job_that_is_done_when_the_process_ends
    file = File.join(tempdir, "done")
    first = start_sidekiq("-c", "5", "-t", "3", TEST_RELIABLE: "1")
    push("Write", file, gate)
    wait_until("its start") { working == 1 }
    redis("CONFIG", "SET", "min-replicas-to-write", 1)
    open_gate
    wait_until("the first try") { log_of(first).include?("A job is done, which Redis does not take down") }
    redis("CONFIG", "SET", "min-replicas-to-write", 0)

    assert_predicate(stop(first), :success?)
    assert_equal([0, []], [working, queued])
  end

  # A failover: until the process has found the new server, the old one answers READONLY.
  { "" => nil, "_reliably" => "1" }.each do |name, reliable|
    define_method("test_a_redis_that_is_a_replica#{name}") do
      file = File.join(tempdir, "done")
      first = start_sidekiq("-c", "5", TEST_RELIABLE: reliable)
      push("Write", file, gate)
      wait_until("its start") { reliable ? working == 1 : queued.empty? }
      redis("REPLICAOF", "127.0.0.1", "1")
      open_gate
      wait_until("the end of the job") { File.exist?(file) }
      wait_until("a fetch that fails") { log_of(first).include?("READONLY") }
      redis("REPLICAOF", "NO", "ONE")
      push("Write", file)
      wait_until("the end of another job") { File.readlines(file).size == 2 && working.zero? }

      assert_predicate(stop(first), :success?)
      assert_equal([], queued)
    end
  end

  # Sidekiq cannot put it among the retries. The next process runs it.
  once def test_a_job_that_fails_while_redis_is_a_replica
    file = File.join(tempdir, "later", "done")
    first = start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    push("Write", file, gate)
    wait_until("its start") { working == 1 }
    redis("REPLICAOF", "127.0.0.1", "1")
    open_gate
    wait_until("its failure") { log_of(first).include?("No such file") }
    redis("REPLICAOF", "NO", "ONE")

    assert_predicate(stop(first), :success?)
    Dir.mkdir(File.dirname(file))
    redis("DEL", *redis("KEYS", "heddle:alive:*"), "none")
    start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    wait_until("its end") { File.exist?(file) && working.zero? }

    assert_empty(queued)
  end

  # A full Redis refuses what needs memory.
  def test_a_full_redis_is_drained
    file = File.join(tempdir, "done")
    start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    20.times { push("Write", file, queue: "later") }
    redis("CONFIG", "SET", "maxmemory", 1)

    assert_raises(RedisClient::CommandError) { push("Write", file) }
    redis("RENAME", "queue:later", "queue:default")
    wait_until("the end of all") { File.exist?(file) && File.readlines(file).size == 20 && working.zero? }

    assert_empty(queued)
  end
end
