# frozen_string_literal: true

require "optparse"
require_relative "open_files"
require_relative "../server/limits"

module Heddle
  module CLI
    # `heddle serve`
    class Serve
      ABOUT = <<~TEXT
        usage: heddle serve [OPTIONS] [CONFIG.RU]

        Serves a Rack application (config.ru) with HTTP/1.1 and HTTP/2: thousands of connections in one thread. It needs
        the gems protocol-http1 and protocol-rack, and for HTTP/2 protocol-http2.

        TERM and INT end it when the requests that it has are answered. With --workers, HUP replaces the workers one by
        one with ones that load the application anew. USR2 replaces the program (so does HUP without --workers). The
        sockets stay open meanwhile, and no connection is refused. Sockets of systemd are used.

      TEXT

      # The options of limits, and what they are.
      LIMITS = {
        connections: "open at once", requests: "in the application at once",
        streams: "requests of an HTTP/2 connection at once", body_size: "bytes of a request's body",
        head_size: "bytes of a request's headers", head_time: "seconds until they are there",
        stall: "seconds that a read or write may wait", idle: "seconds that a connection may be idle"
      }.freeze

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status
      def call(args)
        options = parse(args)
        return :help if @help

        require_relative "../server/program"
        OpenFiles.raise_limit
        Server::Program.new(settings(options)).run
      rescue LoadError, ArgumentError, SystemCallError => e
        raise unless known?(e)

        warn("heddle serve: #{e.message}")
        1
      end

      # @return [String]
      def help = ABOUT + parser({}).summarize.join

      private

      # (Errors of the application are shown with their lines.)
      def known?(error)
        error.backtrace.none? { |line| line.include?(".ru:") }
      end

      def parse(args)
        options = { limits: {} }
        rest = parser(options).parse(args)
        raise UsageError, "heddle serve: unexpected argument: #{rest[1]}" if rest.size > 1

        options[:file] = rest.first || "config.ru"
        options
      rescue OptionParser::ParseError => e
        raise UsageError, "heddle serve: #{e.message}"
      end

      def settings(options)
        raise UsageError, "heddle serve: there is no file #{options[:file]}" unless File.file?(options[:file])

        host = options.delete(:host)
        port = options.delete(:port)
        options[:bind] = [*options[:bind], "tcp://#{host || "127.0.0.1"}:#{port || 9292}"] if host || port
        Server::Settings.new(**options)
      end

      def parser(options)
        OptionParser.new do |parser|
          parser.require_exact = true
          addresses(parser, options)
          processes(parser, options)
          LIMITS.each do |name, what|
            kind = %i[head_time stall idle].include?(name) ? OptionParser::DecimalNumeric : OptionParser::DecimalInteger
            parser.on("--max-#{name.to_s.tr("_", "-")} N", kind,
                      "#{what} (#{Server::Limits::DEFAULTS[name]})") do |number|
              options[:limits][name] = number
            end
          end
          parser.on("-h", "--help", "this text") { @help = true }
        end
      end

      def addresses(parser, options)
        parser.on("-b", "--bind URL", "tcp://HOST:PORT, unix:/PATH, ssl://HOST:PORT?cert=FILE&key=FILE;",
                  "several times for several (tcp://127.0.0.1:9292)") { |url| (options[:bind] ||= []) << url }
        parser.on("-o", "--host HOST", "one address to listen on (127.0.0.1)") { |host| options[:host] = host }
        parser.on("-p", "--port PORT", OptionParser::DecimalInteger, "its port (9292)") do |port|
          options[:port] = port
        end
        parser.on("--[no-]http2", "speak HTTP/2 (if its gem is installed)") { |wanted| options[:http2] = wanted }
      end

      def processes(parser, options)
        parser.on("--workers N", OptionParser::DecimalInteger, "processes that serve; 0: this one (0)") do |number|
          raise OptionParser::InvalidArgument, "--workers #{number}" if number.negative?

          options[:workers] = number
        end
        parser.on("--preload", "load the application before the workers are started") { options[:preload] = true }
        parser.on("--backend NAME", %w[uring epoll], "uring or epoll (the best there is)") do |name|
          options[:backend] = name
        end
        parser.on("--drain SECONDS", OptionParser::DecimalNumeric, "that requests have to end (30)") do |seconds|
          options[:drain] = seconds
        end
        parser.on("--drain-delay SECONDS", OptionParser::DecimalNumeric,
                  "after TERM in which it goes on, but is not ready (0)") do |seconds|
          raise OptionParser::InvalidArgument, "--drain-delay #{seconds}" if seconds.negative?

          options[:delay] = seconds
        end
        parser.on("--control URL", "where it answers /live, /ready and /metrics") { |url| options[:control] = url }
        parser.on("--access-log [FILE]", "a line for each request, on standard output or into a file") do |path|
          options[:access_log] = path ? File.open(path, "a") : $stdout
        end
      end
    end
  end
end
