# frozen_string_literal: true

module TestSupport
  # What the tests of Heddle.shared_io have in common.
  module SharedIO
    def teardown
      Heddle.shared_io = :warn
      super
    end

    # Runs the block with this mode.
    # @return [String] what it has said on stderr
    def said_with(mode, &)
      Heddle.shared_io = mode
      # Each test must see its own warnings: a place is warned about once.
      Ractor.current[:heddle_shared_io_places] = nil
      capture_io(&)[1]
    end

    # @return [Integer] how many
    def reports(said) = said.scan(/^heddle: .* reads from /).size

    # Runs this number of tasks, each of which should return its number, and waits for all of them. None ends another
    # one.
    # @return [Hash] how many were :right and :wrong, and the classes of their errors
    def tally(count, &block)
      Heddle.run(backend: backend) do
        tasks = Array.new(count) do |number|
          Heddle.spawn(number, name: "task #{number}", isolated: true, &block)
        end
        tasks.each(&:wait)
        tasks.each_with_index.map { |task, number| task.error&.class || (task.value == number ? :right : :wrong) }.tally
      end
    end

    # The tasks share an IO that must not be shared: by default Heddle warns, once, with the remedy.
    def assert_warns(remedy, count: 5, &)
      said = said_with(:warn) do
        tally(count, &)
      rescue Heddle::TimeoutError
        nil # tasks that share a connection may wait for ever
      end

      assert_equal(1, reports(said), said)
      assert_match(/^task "task \d+" waits here:\n.*_test.rb:\d+:in .*^task "task \d+" reads here:/m, said)
      assert_includes(said, remedy)
    end

    # No task gets the answer of another one, and some get an error of this class.
    def assert_raises_where_shared(error, count: 50, &)
      results = nil
      said = said_with(:raise) { silently { results = tally(count, &) } }

      refute_includes(results.keys, :wrong)
      assert_operator(results.fetch(error, 0), :>, 0, results.inspect)
      assert_equal(0, reports(said))
    end

    def assert_right_and_silent(&)
      results = nil
      said = said_with(:warn) { results = tally(50, &) }

      assert_equal({ right: 50 }, results)
      assert_equal("", said)
    end

    def silently
      before = Thread.report_on_exception
      Thread.report_on_exception = false
      yield
    ensure
      Thread.report_on_exception = before
    end
  end
end
