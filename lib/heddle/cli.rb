# frozen_string_literal: true

require_relative "version"

module Heddle
  # The command `heddle`. Each of its commands is a class in cli/, which is loaded when it is called.
  #
  # @private
  module CLI
    # A mistake in the command line. It is reported in one line, with exit status 2.
    class UsageError < StandardError; end

    COMMANDS = {
      "run" => "run a Ruby script with Heddle, unchanged",
      "serve" => "serve a Rack application",
      "demo" => "measure 1,000 slow HTTP requests: blocking, threads, Heddle",
      "doctor" => "show what Heddle can use on this machine, and what to change",
      "help" => "show the options of a command"
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
        else call(command(name), rest)
        end
      rescue UsageError => e
        warn(e.message)
        2
      end

      private

      def call(command, rest)
        status = command.call(rest)
        status == :help ? show(command.help) : status
      end

      def show(text)
        puts(text)
        0
      end

      def version(rest)
        refuse(rest.first, "--version") unless rest.empty?

        show("heddle #{VERSION}")
      end

      def help(names)
        refuse(names[1], "help") if names.size > 1
        return usage($stdout, 0) if names.empty? || %w[help --help -h].include?(names.first)

        show(command(names.first).help)
      end

      def refuse(argument, command)
        raise UsageError, "heddle #{command}: unexpected argument: #{argument}"
      end

      def command(name)
        if name == "help" || !COMMANDS.key?(name)
          raise UsageError, "heddle: unknown command: #{name} (heddle --help lists them)"
        end

        require "heddle/cli/#{name}"
        const_get(name.capitalize).new
      end

      def usage(out, status)
        width = COMMANDS.keys.map(&:size).max
        commands = COMMANDS.map { |name, text| "  heddle #{name.ljust(width)}  #{text}" }
        out.puts("usage: heddle COMMAND", "", *commands, "",
                 "heddle help COMMAND shows the options of a command; heddle --version shows the version.")
        status
      end
    end
  end
end
