# frozen_string_literal: true

require_relative "../cli"
require_relative "run/deep_stacks"
require_relative "run/main_program"
require_relative "run/own_frames"

module Heddle
  module CLI
    # `heddle run`: runs a main program as a task. The script must see the same process as under plain Ruby, so this
    # class loads nothing beyond Heddle itself, not even OptionParser.
    #
    # @private
    class Run
      BACKENDS = (RUBY_PLATFORM.include?("linux") ? %w[uring epoll poll] : %w[kqueue poll]).freeze
      CHOICE = "#{BACKENDS[..-2].join(", ")} or #{BACKENDS.last}".freeze
      private_constant :CHOICE

      HELP = <<~TEXT.freeze
        usage: heddle run [OPTIONS] SCRIPT [ARGUMENTS]
               heddle run [OPTIONS] -S NAME [ARGUMENTS]
               heddle run [OPTIONS] -e CODE [-e CODE ...] [ARGUMENTS]

        Runs a Ruby script as if Heddle.run stood around it. Fiber.schedule and Heddle.spawn work everywhere in the
        script, and while one fiber waits, the others run. The script needs no change: exit status, signals, standard
        input, ARGV and $0 are the same as without Heddle.

        When the main program has ended, Heddle waits for the fibers that still run. `exit` and errors do not wait.
        Ruby runs at_exit blocks after that, outside of Heddle, and so the tests of minitest/autorun. Tests run inside
        if the script ends with `exit(Minitest.run(ARGV))` and requires "minitest" without autorun.

          --backend NAME         use #{CHOICE} (default: the best there is)
          --time-slice SECONDS   a task that computes lets the others run after this time (default: 0, never)
          -S NAME                run a script that is in PATH, such as the command of a gem: heddle run -S rake
          -e CODE                run this line of code; several -e are several lines
          -                      read the script from standard input
          --deep-tasks           tasks may nest as many calls as a main program (see below)
          --                     end the options

        All arguments after the script's name are for the script. Options in its first line (#!/usr/bin/env ruby -w) are
        not taken: give them to Ruby with RUBYOPT=-w.

        The script has the stack of a main program, a task an eighth of it. With --deep-tasks, `heddle run` starts Ruby
        a second time, in the same process, with larger stacks for tasks. It does not if RUBY_FIBER_VM_STACK_SIZE or
        RUBY_FIBER_MACHINE_STACK_SIZE is set.
      TEXT

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status, if the script ends without an exception
      def call(args)
        rest = options(args)
        return :help if @help
        raise UsageError, "heddle run: name a script, or give -e" if @lines.nil? && rest.empty?

        DeepStacks.make_room(["run", *args]) if @deep_tasks
        program = program_of(rest)
        ARGV.replace(rest)
        execute(program)
      rescue MainProgram::Missing => e
        refuse(e)
      end

      # @return [String]
      def help = HELP

      private

      # Takes the options that stand before the script's name.
      #
      # @return [Array<String>] the arguments after them
      def options(args) # rubocop:disable Metrics/CyclomaticComplexity -- a case for each option
        while args.first&.match?(/\A-./m)
          option, *args = args
          case option
          when "--" then break
          when "-h", "--help" then return @help = true
          when "-S" then @search = true
          when "--deep-tasks" then @deep_tasks = true
          when /\A-e(.+)?/m then (@lines ||= []) << ($1 || args.shift || missing("-e"))
          when /\A--backend(?:=(.*))?\z/m then @backend = known($1 || args.shift)
          when /\A--time-slice(?:=(.*))?\z/m then @time_slice = seconds($1 || args.shift || missing("--time-slice"))
          else raise UsageError, "heddle run: invalid option: #{option}"
          end
        end
        args
      end

      def known(name)
        return name if BACKENDS.include?(name)

        missing("--backend (#{CHOICE})") if name.to_s.empty?

        raise UsageError, "heddle run: invalid argument: --backend #{name} (#{CHOICE})"
      end

      def seconds(text)
        value = Float(text, exception: false)
        return value.zero? ? false : value if value

        raise UsageError, "heddle run: invalid argument: --time-slice #{text} (a number of seconds)"
      end

      def missing(option) = raise(UsageError, "heddle run: missing argument: #{option}")

      # Takes the name of the script out of the arguments after the options.
      def program_of(rest)
        return MainProgram.of_lines(@lines) if @lines

        name = rest.shift
        MainProgram.find(@search ? MainProgram.search(name) : name)
      end

      def execute(program)
        require "heddle"
        started = false
        Heddle.run(backend: @backend, time_slice: @time_slice) do
          started = true
          program.run
        end
        0
      rescue Exception => e # rubocop:disable Lint/RescueException -- Ruby reports it, and takes the exit status from it
        return refuse(e) if !started && (e.is_a?(Error) || e.is_a?(ArgumentError))

        OwnFrames.remove_from(e, program.name, caller)
        raise
      end

      def refuse(error)
        warn("heddle run: #{error.message}")
        1
      end
    end
  end
end

Heddle::CLI.add("run", Heddle::CLI::Run.new)
