# frozen_string_literal: true

module TestSupport
  # Counts what programs cost with a few tasks and with many: the instructions, by valgrind. In the body of a contract:
  #
  #   extend TestSupport::Growth
  #   costs_grow_with_the_number few: 100, many: 800, programs: { tasks: "COUNT.times { Heddle.spawn { sleep(0) } }" }
  module Growth
    VALGRIND = "/usr/bin/valgrind"
    # Before the calls of this function valgrind writes down its counts.
    MARK = "def mark = Process.getpgid(0)\n"

    # Makes a test for each program: what many tasks cost is their number times what a few cost, with this much room,
    # because some of it is done once.
    #
    # @param programs [Hash{Symbol => String}] in each the part after `mark` counts, until all tasks have ended
    # @param prelude [String] the methods that they call
    # @param each_backend [Boolean] or only with the first one?
    def costs_grow_with_the_number(programs:, few:, many:, room: 1.6, prelude: "", each_backend: true)
      include Questions

      counted = {}
      define_method(:counts) do
        counted[backend] ||= instructions(Growth.script(programs, [few, many], backend, prelude)).each_slice(2).to_a
      end
      programs.each_key.with_index do |name, number|
        define_method("test_#{name}") { assert_grows(*counts[number], many.fdiv(few), room, many) }
        once(:"test_#{name}") unless each_backend
      end
    end

    # All in one process, for valgrind takes long to start Ruby.
    def self.script(programs, numbers, backend, prelude)
      <<~RUBY
        #{MARK}#{prelude}
        programs = {
        #{programs.map { |name, program| "#{name}: -> {\n#{program}}" }.join(",\n")}
        }
        programs.each_value do |program|
          #{numbers}.each do |count|
            GC.enable
            GC.start
            GC.disable
            COUNT = count
            Heddle.run(backend: "#{backend}", &program)
            mark
            Object.send(:remove_const, :COUNT)
          end
        end
      RUBY
    end

    # For the tests.
    module Questions
      private

      def assert_grows(small, large, times, room, many)
        assert_operator(large, :<, room * small * times, "#{small} instructions for a few tasks")
        assert_operator(large, :>, many * 300, "nothing was counted")
      end

      # @return [Array<Integer>] those between the first and the second mark, between the third and the fourth, and so
      #   on
      def instructions(code)
        skip("Debian's package valgrind is not installed (bin/test tries to install it)") unless File.exist?(VALGRIND)
        counts = File.join(tempdir, "counts")
        outcome = run_command(VALGRIND, "--tool=callgrind", "--callgrind-out-file=#{counts}", "--dump-before=getpgid",
                              *ruby_command, "--disable=gems", "-rheddle", "-e", code, env: { "RUBYOPT" => nil })

        assert_predicate(outcome, :success?, outcome.err)
        parts = Dir.glob("#{counts}.*").sort_by { |file| Integer(File.extname(file).delete(".")) }
        parts.map { |file| Integer(File.read(file)[/^totals: (\d+)/, 1]) }.each_slice(2).map(&:last)
      end
    end
  end
end
