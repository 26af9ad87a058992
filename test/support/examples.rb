# frozen_string_literal: true

module TestSupport
  # Runs the programs of examples/ as a user does, each in a process of its own. For the bodies of contracts:
  #
  #   include TestSupport::Examples
  module Examples
    FOLDER = File.expand_path("../../examples", __dir__)
    LIMIT = 60

    # A program that runs.
    class Program
      attr_reader :pid

      def initialize(pid, folder)
        @pid = pid
        @folder = folder
      end

      def out = File.read(File.join(@folder, "out"))

      def err = File.read(File.join(@folder, "err"))

      def signal(name) = Process.kill(name, pid)

      # @return [Process::Status, nil] nil while it runs
      def status = @status ||= Process.wait2(pid, Process::WNOHANG)&.last

      # With all that it has started.
      def kill
        Process.kill(:KILL, -pid)
        @status = Process.wait2(pid).last
      end
    end

    def setup
      super
      heddle_only("examples need Heddle")
      @programs = []
    end

    def teardown
      @programs&.each { |program| program.kill unless program.status }
      super
    end

    # @return [Program] that has begun; it is ended after the test
    def start_example(name, *args, input: File::NULL)
      folder = tempdir
      pid = Process.spawn({ "HEDDLE_BACKEND" => backend }, *ruby_command, File.join(FOLDER, "#{name}.rb"),
                          *args.map(&:to_s), in: input, out: File.join(folder, "out"),
                                             err: File.join(folder, "err"), pgroup: true)
      @programs << (program = Program.new(pid, folder))
      program
    end

    # @return [Program] that has ended
    def run_example(...)
      start_example(...).tap { |program| ended(program) }
    end

    # Waits for its end, for as long as it may take.
    #
    # @return [Process::Status]
    def ended(program)
      wait_until("the end of the program", timeout: LIMIT) { program.status }
    end

    # Waits until the program has said it.
    #
    # @return [MatchData]
    def heard(program, pattern, where = :err)
      wait_until("#{pattern.inspect} of the program") do
        program.public_send(where).match(pattern) ||
          (flunk("it has ended: #{program.out}#{program.err}") if program.status)
      end
    end
  end
end
