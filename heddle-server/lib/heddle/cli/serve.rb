# frozen_string_literal: true

require "heddle/cli"
require_relative "serve/configuration"
require_relative "serve/options"

module Heddle
  module CLI
    # `heddle serve`
    #
    # @private
    class Serve
      ABOUT = <<~TEXT
        usage: heddle serve [OPTIONS] [CONFIG.RU]

        Serves a Rack application (config.ru) over HTTP/1.1 and HTTP/2, with all its connections in one thread. If
        systemd has opened sockets for it, it uses these.

        Signals:
          TERM, INT  stop. Requests that have begun are finished first (see --drain). A second signal stops at once.
          HUP        open the access log and load the certificates anew. Then, with --workers, replace the workers one
                     by one; new ones load the application again. Without --workers, or with --preload: the same as
                     USR2.
          USR2       restart the whole program. Its sockets stay open, so no connection is refused. If the program or
                     the application does not load, the old one goes on.
          TTIN, TTOU one worker more, one worker fewer.

        Options, with their defaults in brackets. In a configuration file each long option is a method, such as
        worker_timeout 30. The command line wins.
      TEXT
      # This file is read if it exists, and no other one is named.
      CONFIG = "config/heddle.rb"
      # One of these options on the command line replaces all of them in the configuration.
      ADDRESSES = %i[bind host port].freeze
      private_constant :CONFIG, :ADDRESSES

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status
      def call(args)
        options = Options.new
        rest = parse(options, args)
        return :help if options.given[:help]

        CLI.make_room
        require_relative "../server/process/program"
        Server::Program.new(settings(options.given, rest)).run
      rescue LoadError, ArgumentError, SystemCallError => e
        raise unless known?(e)

        warn("heddle serve: #{e.message.sub(/\A(bind|control):/, "--\\1:")}")
        1
      end

      # @return [String]
      def help = ABOUT + Options.new.help

      private

      # Errors of the application and of the configuration are shown with their lines.
      def known?(error)
        error.backtrace.none? { |line| line.include?(".ru:") || (@config && line.start_with?(@config)) }
      end

      def parse(options, args, file = nil)
        rest = options.parse(args)
        raise UsageError, "heddle serve: unexpected argument: #{rest[1]}" if rest.size > 1

        rest
      rescue OptionParser::ParseError => e
        raise UsageError, "heddle serve: #{"#{file}: " if file}#{e.message}"
      end

      def settings(given, rest)
        program = File.expand_path($PROGRAM_NAME)
        directory = enter(given[:directory])
        given, hooks = configured(given)
        directory = enter(given[:directory]) if given[:directory]
        %w[RACK_ENV RAILS_ENV].each { |name| ENV[name] = given[:environment] } if given[:environment]
        file = rest.first || "config.ru"
        raise UsageError, "heddle serve: there is no file #{file}" unless File.file?(file)

        complete(given)
        Server::Settings.new(**given.slice(*Server::Settings.members), file:, program:, directory:, hooks:)
      end

      def complete(given)
        given[:bind] = addresses(given)
        given[:workers] ||= environment_number("WEB_CONCURRENCY", 0..Options::WORKERS_MAX)
        given[:access_log] = open_log(given[:access_log]) if given[:access_log].is_a?(String)
        given[:pidfile] &&= File.expand_path(given[:pidfile])
      end

      # Enters the folder. If a link has led here, its path is kept: the link may lead to another folder later.
      #
      # @param path [String, nil]
      # @return [String]
      def enter(path)
        here = ENV.fetch("PWD", "")
        here = Dir.pwd unless here.start_with?("/") && File.identical?(here, ".")
        path = File.expand_path(path || here, here)
        Dir.chdir(path)
        ENV["PWD"] = path
      rescue SystemCallError => e
        raise UsageError, "heddle serve: invalid argument: --directory #{path} (#{e.class.new.message})"
      end

      # @return [Array(Hash, Hash)] the options of the command line or of the file, and the hooks of the file
      def configured(given)
        path = given[:config] || (CONFIG if File.file?(CONFIG))
        return [given, {}] unless path

        options = Options.new
        @config = File.expand_path(path)
        configuration = Configuration.new(@config, options.names)
        parse(options, configuration.arguments, path)
        configured = options.given
        ADDRESSES.each { |name| configured.delete(name) } if given.keys.intersect?(ADDRESSES)
        [{ **configured, **given, limits: { **configured[:limits], **given[:limits] } }, configuration.hooks]
      end

      # @return [Array<String>, nil]
      def addresses(given)
        host, port = given.values_at(:host, :port)
        return given[:bind] if given[:bind] && !host && !port

        port ||= asked = environment_number("PORT", 0..65_535)
        return given[:bind] unless host || port

        # PORT is set by a platform that sends requests to a container from outside of this machine.
        [*given[:bind], Server::Listener.url(host || (asked ? "0.0.0.0" : "127.0.0.1"), port || 9292)]
      end

      def environment_number(name, range)
        text = ENV.fetch(name, "")
        return if text.empty?

        number = Integer(text, 10, exception: false)
        return number if number && range.cover?(number)

        raise UsageError, "heddle serve: invalid #{name}=#{text} in the environment (must be from #{range.begin} to " \
                          "#{range.end})"
      end

      def open_log(path)
        File.open(path, "a")
      rescue SystemCallError => e
        raise UsageError, "heddle serve: invalid argument: --access-log #{path} (#{e.class.new.message})"
      end
    end
  end
end

Heddle::CLI.add("serve", Heddle::CLI::Serve.new)
