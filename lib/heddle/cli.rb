# frozen_string_literal: true

require_relative "version"

module Heddle
  # The command `heddle`, and how a gem adds a command to it. For `heddle NAME`, Heddle requires "heddle/cli/NAME", and
  # that file adds the command. So a gem has such a file in its lib/. The list of `heddle help` has only the commands of
  # Heddle itself and of heddle-server. `require "heddle/cli"` loads this module where no command has loaded it.
  #
  # @example lib/heddle/cli/crawl.rb in a gem
  #   require "heddle/cli/options"
  #
  #   class CrawlCommand
  #     def call(args)
  #       limit = 10
  #       options = Heddle::CLI::Options.new { |on| on.on("--limit N", Integer) { |number| limit = number } }
  #       urls = options.parse(args)
  #       raise Heddle::CLI::UsageError, "heddle crawl: name a URL" if urls.empty?
  #
  #       Heddle::CLI.make_room
  #       require "crawler"
  #       Crawler.new(limit).crawl(urls) ? 0 : 1
  #     rescue OptionParser::ParseError => e
  #       raise Heddle::CLI::UsageError, "heddle crawl: #{e.message}"
  #     end
  #
  #     def help = "usage: heddle crawl [--limit N] URL ...\n"
  #   end
  #
  #   Heddle::CLI.add("crawl", CrawlCommand.new)
  module CLI
    # A mistake in the command line. The message is shown as one line, and the exit status is 2.
    class UsageError < StandardError; end

    COMMANDS = {
      "run" => "run a Ruby script with Heddle, unchanged",
      "serve" => "serve a Rack application (gem heddle-server)",
      "demo" => "measure 1,000 slow HTTP requests: blocking, threads, Heddle",
      "doctor" => "show what Heddle can use on this machine, and what to change",
      "help" => "show the options of a command"
    }.freeze
    # The gems of the commands that are not Heddle's own.
    GEMS = { "serve" => "heddle-server" }.freeze
    # Raised for a command whose gem is missing. The exit status is 1.
    class Missing < StandardError; end
    private_constant :COMMANDS, :GEMS, :Missing

    @commands = {}

    class << self
      # Adds a command.
      #
      # @param name [String] small letters, digits and underscores; the name of its file
      # @param command [#call, #help] its method call gets the Array of the arguments after the name, and returns the
      #   exit status, or :help to show its help; its method help returns a text
      # @return [void]
      def add(name, command)
        @commands[name] = command
        nil
      end

      # Makes room for a command that runs many tasks: it raises the limit of open files as far as the system allows,
      # and gives tasks stacks that are as deep as that of a main program. For the stacks, Ruby is started once more in
      # the same process, with the same command line. So a command calls this first, and loads its libraries afterwards.
      #
      # @return [void]
      def make_room
        require_relative "cli/open_files"
        require_relative "cli/run/deep_stacks"
        DeepStacks.make_room(@args)
        OpenFiles.raise_limit
      end

      # @return [Hash{String => String}] variables for the environment of a program that takes the place of this one: it
      #   has the deep stacks from its start, if {CLI.make_room} has made them here
      def environment = defined?(DeepStacks) ? DeepStacks.environment : {}

      # @private Runs a command.
      #
      # @param args [Array<String>] the command line
      # @return [Integer] the exit status
      def start(args)
        @args = args.dup
        name, *rest = args
        case name
        when nil then usage($stderr, 2)
        when "--help", "-h", "help" then help(rest)
        when "--version", "-v" then version(rest)
        else call(command(name), rest)
        end
      rescue UsageError, Missing => e
        warn(e.message)
        e.is_a?(UsageError) ? 2 : 1
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
        load_command(name) if name.scrub.match?(/\A[a-z][a-z0-9_]*\z/)
        @commands[name] or raise UsageError, "heddle: unknown command: #{name} (heddle --help lists them)"
      end

      def load_command(name)
        require "heddle/cli/#{name}"
      rescue LoadError => e
        raise unless e.path == "heddle/cli/#{name}"

        gem = GEMS[name] or return
        raise Missing, "heddle #{name}: this command is in the gem #{gem}: put it into the Gemfile, or run " \
                       "`gem install #{gem}`"
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
