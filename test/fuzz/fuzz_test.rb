# frozen_string_literal: true

# bin/test: takes 26 s, 0.4 of a core

require_relative "../test_helper"
require_relative "rounds"

# The random operations of test/fuzz/run.rb, with a new seed each time: a few seconds, or as many as
# HEDDLE_FUZZ_SECONDS says. For hours, by hand:
#   ruby -Ilib test/fuzz/run.rb --seconds 3600
class FuzzTest < HeddleTest
  RUN = File.join(__dir__, "run.rb")
  SECONDS = Float(ENV.fetch("HEDDLE_FUZZ_SECONDS", "2.5"))

  time_limit SECONDS.ceil + 700

  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}") { fuzz(backend, reason, SECONDS) }
    define_method("test_#{backend}_with_gc_stress") { fuzz(backend, reason, SECONDS / 2, "--stress") }
    { backend_that_a_thread_keeps_is_not_tidied_away: :tidies, thread_that_nobody_keeps_is_ended: :ends_threads }
      .each do |name, check|
        define_method("test_a_#{name}_#{backend}") do
          reason ? skip("backend #{backend}: #{reason}") : __send__(check, backend)
        end
      end
  end

  def test_a_seed_makes_the_same_plan
    plans = Array.new(2) { plan("--seed", "7", "--rounds", "2", "--plan") }

    assert_equal(*plans)
    refute_equal(plans.first, plan("--seed", "8", "--rounds", "2", "--plan"))
  end

  # Ruby's IO.pipe alone leaves such an IO here in four of five rounds. Its close closes a descriptor of somebody else.
  def test_an_exception_in_new_pipe_leaves_no_io_without_its_descriptor
    actor = Fuzz::Actor.new(1)
    kept = []
    5.times { raise_into { kept.concat(actor.__send__(:new_pipe)) } }

    assert_empty(ObjectSpace.each_object(IO).select { |io| lost?(io) })
    refute_empty(kept)
  ensure
    kept.each(&:close)
  end

  private

  # Raises an exception into a thread that calls the block again and again, while the collector runs at each object.
  def raise_into
    begun = Thread::Queue.new
    error = Class.new(StandardError)
    thread = Thread.new do
      begun << true
      GC.stress = true
      loop { yield }
    rescue error
      GC.stress = false
    end
    begun.pop
    sleep(rand(0.002..0.005))
    thread.raise(error)
    thread.join
  ensure
    GC.stress = false
  end

  def lost?(io)
    !io.closed? && !File.exist?("/proc/self/fd/#{io.fileno}")
  rescue IOError
    false # it was never opened
  end

  def fuzz(backend, reason, seconds, *options)
    skip("backend #{backend}: #{reason}") if reason
    outcome = run_command(*ruby_command, RUN, "--seconds", seconds.to_s, *options,
                          env: { "HEDDLE_BACKEND" => backend }, timeout: seconds + 680)

    assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
    assert_match(/^[1-9]\d* rounds, 0 failed/, outcome.out)
    assert_equal("", outcome.err)
  end

  # What nobody owns is closed; what is the thread's is not, for it would be closed once more when the thread ends.
  def tidies(backend)
    gate = Thread::Queue.new
    thread = thread_that_keeps(backend, gate)
    before = TestSupport::Leaks.snapshot
    let_run(gate)
    kept = left_since(before)
    IO.sysopen(__FILE__)
    tidy(before)

    assert_equal(kept, left_since(before))
    refute_empty(kept)
  ensure
    gate&.close
    thread&.join
  end

  # A thread that an actor has begun, and not kept: it goes, and so does what it has opened.
  def ends_threads(backend)
    gate = Thread::Queue.new
    before = TestSupport::Leaks.snapshot
    thread = thread_that_keeps(backend, gate)
    let_run(gate)
    tidy(before)

    refute_predicate(thread, :alive?)
    assert_empty(left_since(before))
  end

  def tidy(before)
    Fuzz::Rounds.new(backend: "epoll").__send__(:tidy, before, ObjectSpace.each_object(IO).to_a)
  end

  def left_since(before) = TestSupport::Leaks.descriptors.to_a - before.descriptors.to_a

  # Until that thread has run what it runs, and waits once more.
  def let_run(gate)
    2.times { gate << :go_on }
    sleep(0.001) until gate.num_waiting == 1 && gate.empty?
  end

  # A thread that runs something when it is asked to, and does not end before the gate is closed.
  def thread_that_keeps(backend, gate)
    Thread.new do
      gate.pop
      Heddle.run(backend: backend) { gate.pop }
      gate.pop
    end
  end

  def plan(*options) = run_command(*ruby_command, RUN, *options).out.lines.drop(1)
end
