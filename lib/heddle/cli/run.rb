# frozen_string_literal: true

require_relative "run/deep_stacks"
require_relative "run/main_program"
require_relative "run/own_frames"

module Heddle
  module CLI
    # `heddle run`: a script's main program as a task. What the script sees of the process is what it sees under plain
    # Ruby: this loads no more than Heddle itself, so no OptionParser either.
    class Run
      HELP = <<~TEXT
        usage: heddle run [--backend uring|epoll] SCRIPT [ARGUMENTS]

        Runs a Ruby script, unchanged, with its main program as a task: whatever waits in a fiber (Fiber.schedule,
        Heddle.spawn) lets the others run. The exit status, signals, standard input, ARGV and $0 are as without Heddle.
        At the end of the main program the fibers that still run are waited for; `exit` or an error ends at once.
        What stands after the script's name belongs to the script. A script named - is read from standard input.
        Ruby is started once more, in the same process, to give every fiber as much room for its calls as a main program
        has; not if RUBY_FIBER_VM_STACK_SIZE or RUBY_FIBER_MACHINE_STACK_SIZE is set.
      TEXT

      BACKENDS = %w[uring epoll].freeze

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status, if the script ends without an exception
      def call(args)
        (name, *rest), backend = options(args)
        return :help if name == :help
        raise UsageError, "heddle run: name a script" unless name

        DeepStacks.make_room(["run", *args])
        ARGV.replace(rest)
        execute(MainProgram.find(name), backend)
      rescue MainProgram::Missing => e
        refuse(e)
      end

      # @return [String]
      def help = HELP

      private

      # Takes the options that stand before the script's name.
      def options(args)
        backend = nil
        while args.first&.start_with?("-") && args.first != "-"
          option, *args = args
          case option
          when "--" then break
          when "-h", "--help" then return [[:help]]
          when "--backend" then backend = known(args.shift)
          when /\A--backend=(.*)\z/m then backend = known($1)
          else raise UsageError, "heddle run: invalid option: #{option}"
          end
        end
        [args, backend]
      end

      def known(name)
        return name if BACKENDS.include?(name)

        mistake = name.to_s.empty? ? "missing argument: --backend" : "invalid argument: --backend #{name}"
        raise UsageError, "heddle run: #{mistake} (#{BACKENDS.join(" or ")})"
      end

      def execute(script, backend)
        require "heddle"
        started = false
        Heddle.run(backend:) do
          started = true
          script.run
        end
        0
      rescue Exception => e # rubocop:disable Lint/RescueException -- Ruby reports it, and takes the exit status from it
        return refuse(e) if !started && (e.is_a?(Error) || e.is_a?(ArgumentError))

        OwnFrames.remove_from(e)
        raise
      end

      def refuse(error)
        warn("heddle run: #{error.message}")
        1
      end
    end
  end
end
