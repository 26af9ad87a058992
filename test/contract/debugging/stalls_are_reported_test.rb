# frozen_string_literal: true

# bin/test: takes 8 s, 0.7 of a core

require "tempfile"

require_relative "../../test_helper"

# HEDDLE_STALLS: who keeps the others from running is named while he does.
contract "Stalls" do
  heddle_only "HEDDLE_STALLS"

  # In each a task does something until the report is there.
  { "computes" => "nil until told?", "blocks" => "Heddle.blocking { sleep(0.01) until told? }",
    "blocks_and_computes" => "Heddle.blocking { nil until told? }",
    "takes_from_a_queue_that_is_never_empty" => "queue = Queue.new; (queue << 1 && queue.pop) until told?",
    "in_an_enumerator" => "Enumerator.new { |to| (nil until told?) || to << 1 }.next" }.each do |name, work|
    define_method("test_a_task_that_#{name}") do
      text = stalls(<<~RUBY)
        Heddle.run do
          Heddle.spawn { loop { sleep(0.001) && $other = true } }.tap do |other|
            Heddle.spawn(name: "busy") do
              sleep(0.01)
              #{work}
            end.wait
            other.cancel
          end
        end
      RUBY

      assert_match(/^heddle: task "busy" has kept the others from running for [\d.]+ s \(HEDDLE_STALLS=0\.05\)/, text)
      assert_match(/^ +-e:\d+:in /, text)
      assert_equal(!name.start_with?("blocks"), text.match?(/^ +A time slice would let them run: Heddle\.run/), text)
      refute_match(%r{lib/heddle}, text)
    end
  end

  # It holds the GVL: nobody can look before it returns, but then the line is still known.
  def test_a_method_in_c
    text = stalls(<<~RUBY)
      Heddle.run do
        Heddle.spawn(name: "busy") do
          n = 50_000
          sleep(0.01) && LONG_WORK.call(n *= 2) until told?("pow") # a new stall each time, and only one is reported
        end
      end
    RUBY

    assert_match(/pow'\n +-e:\d+:in /, text)
  end

  # It is raised right after the report: nothing may be raised where the report is made.
  def test_what_arrives_during_the_report
    { 'busy.raise(IOError, "from outside")' => "from outside", "busy.kill" => nil }.each do |sent, message|
      text = stalls(<<~RUBY)
        sent = false
        busy = Thread.new do
          Heddle.run do
            n = 50_000
            until sent || told?
              sleep(0.01)
              LONG_WORK.call(n *= 2)
            end
            ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
            nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
            print("It has computed to its end.")
          end
        rescue IOError => e
          print(e.message, ".")
        end
        busy.report_on_exception = false
        $stderr = Class.new do
          define_method(:write) do |text|
            here = busy.equal?(Thread.current) # and not the thread that looks, too
            here && Thread.new { #{sent} }.join
          ensure
            sent ||= here
          end
        end.new
        busy.join
        print("ended.")
      RUBY

      assert_equal("#{"#{message}." if message}ended.", text[/\A[^.]*\.(ended\.)?/])
    end
  end

  def test_the_child_of_a_fork
    text = stalls(<<~RUBY)
      Heddle.run do
        Process.wait(fork { Heddle.run { Heddle.spawn(name: "in the child") { nil until told?("in the child") } } })
      end
    RUBY

    assert_match(/task "in the child"/, text)
  end

  def test_who_waits_keeps_nobody_from_running
    assert_equal("", stalls("Heddle.run { Heddle.map(1..5) { sleep(0.1) } && sleep(0.2) }", limit: "20"))
  end

  def test_a_deadlock_is_still_seen
    text = stalls("Heddle.run { Thread::Queue.new.pop }\nrescue Heddle::Deadlock\nprint('deadlock')")

    assert_equal("deadlock", text)
  end

  def test_what_is_no_number_of_seconds
    %w[x 0 -1 Infinity 1e300].each do |limit|
      assert_match(/HEDDLE_STALLS=#{limit} has no effect/, stalls("Heddle.run { sleep(0.001) }", limit: limit))
    end
  end

  private

  # @return [String] what was said, by the end of the program
  def stalls(program, limit: "0.05")
    prelude = <<~RUBY
      SAID = File.open(ARGV.fetch(0), "a")
      $stderr.reopen(SAID)
      $stderr.sync = true
      STARTED = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      MODULUS = (1 << 4000) - 3
      LONG_WORK = ->(n) { 3.pow(1 << n, MODULUS) } # one method in C, n multiplications: it keeps the GVL
      def told?(what = "heddle")
        return true if Process.clock_gettime(Process::CLOCK_MONOTONIC) - STARTED > 60
        return false if SAID.pos.zero? # (a call that keeps the GVL)

        Fiber.blocking { File.read(ARGV.fetch(0)) }.include?(what) # (without the scheduler: it must not end the turn)
      end
    RUBY
    Tempfile.create("stalls") do |file|
      env = { "HEDDLE_STALLS" => limit, "HEDDLE_BACKEND" => backend, "HEDDLE_TIME_SLICE" => "0" }
      outcome = run_ruby("#{prelude}begin\n#{program}\nend", file.path, env: env)

      assert_predicate(outcome, :success?, outcome.err)
      outcome.out + outcome.err + file.read
    end
  end
end
