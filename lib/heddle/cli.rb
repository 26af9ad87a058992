# frozen_string_literal: true

require_relative "version"
require_relative "cli/usage_error"

module Heddle
  # The command `heddle`. Each of its commands is a class in cli/, loaded when it is called for.
  module CLI
    COMMANDS = {
      "run" => "run a Ruby script with Heddle, unchanged",
      "demo" => "measure 1,000 slow HTTP requests: blocking, threads, Heddle",
      "doctor" => "say what this machine and this Ruby can do",
      "help" => "say more about a command"
    }.freeze

    class << self
      # Runs a command.
      #
      # @param args [Array<String>] the command line
      # @return [Integer] the exit status
      def start(args)
        name, *rest = args
        case name
        when nil then usage($stderr, 2)
        when "--help", "-h", "help" then help(rest)
        when "--version", "-v" then version(rest)
        else command(name).new.call(rest)
        end
      rescue UsageError => e
        warn(e.message)
        2
      end

      private

      def version(rest)
        refuse(rest.first, "--version") unless rest.empty?

        puts("heddle #{VERSION}")
        0
      end

      def help(names)
        refuse(names[1], "help") if names.size > 1
        return usage($stdout, 0) if names.empty? || %w[help --help -h].include?(names.first)

        puts(command(names.first).new.help)
        0
      end

      def refuse(argument, command)
        raise UsageError, "heddle #{command}: unexpected argument: #{argument}"
      end

      def command(name)
        case name
        when "run" then load_command("run", :Run)
        when "demo" then load_command("demo", :Demo)
        when "doctor" then load_command("doctor", :Doctor)
        else raise UsageError, "heddle: unknown command: #{name} (heddle --help lists them)"
        end
      end

      def load_command(file, constant)
        require_relative "cli/#{file}"
        const_get(constant)
      end

      def usage(out, status)
        width = COMMANDS.keys.map(&:size).max
        commands = COMMANDS.map { |name, text| "  heddle #{name.ljust(width)}  #{text}" }
        out.puts("usage: heddle COMMAND", "", *commands, "", "heddle help COMMAND says more; heddle --version")
        status
      end
    end
  end
end
