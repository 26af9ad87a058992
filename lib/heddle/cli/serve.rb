# frozen_string_literal: true

require_relative "exact_options"
require_relative "open_files"
require_relative "../server/limits"
require_relative "../server/listener"

module Heddle
  module CLI
    # `heddle serve`
    class Serve
      ABOUT = <<~TEXT
        usage: heddle serve [OPTIONS] [CONFIG.RU]

        Serves a Rack application (config.ru) over HTTP/1.1 and HTTP/2, with all its connections in one thread. It needs
        the gems protocol-http1 and protocol-rack, and for HTTP/2 also protocol-http2. If systemd has opened sockets for
        it, it uses these.

        Signals:
          TERM, INT  stop. Requests that have begun are finished first (see --drain). A second signal stops at once.
          HUP        with --workers: replace the workers one by one; new ones load the application again.
                     Without --workers: the same as USR2.
          USR2       restart the whole program. Its sockets stay open, so no connection is refused.

        Options, with their defaults in brackets:
      TEXT

      # The options of limits, and what they are.
      LIMITS = {
        connections: "connections that are open at once", requests: "requests that are in the application at once",
        client_requests: "the same of one client's address", request_time: "seconds until an answer begins",
        streams: "requests at once in one HTTP/2 connection", body_size: "size of a request's body, in bytes",
        head_size: "size of a request's headers, in bytes", head_time: "seconds until the headers must be there",
        stall: "seconds that a read or a write may take", idle: "seconds that a connection may be idle"
      }.freeze

      WORKERS_MAX = 1024

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

        warn("heddle serve: #{e.message.sub(/\A(bind|control):/, "--\\1:")}")
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
        options[:bind] = [*options[:bind], Server::Listener.url(host || "127.0.0.1", port || 9292)] if host || port
        log = options[:access_log]
        options[:access_log] = open_log(log) if log.is_a?(String)
        Server::Settings.new(**options)
      end

      def open_log(path)
        File.open(path, "a")
      rescue SystemCallError => e
        raise UsageError, "heddle serve: invalid argument: --access-log #{path} (#{e.class.new.message})"
      end

      def parser(options)
        ExactOptions.new do |parser|
          addresses(parser, options)
          processes(parser, options)
          LIMITS.each do |name, what|
            kind = Server::Limits::TIMES.include?(name) ? OptionParser::DecimalNumeric : OptionParser::DecimalInteger
            parser.on("--max-#{name.to_s.tr("_", "-")} N", kind,
                      "limit: #{what} (#{Server::Limits::DEFAULTS[name] || "none"})") do |number|
              options[:limits][name] = checked(number) { Server::Limits.new(name => number) }
            end
          end
          clients(parser, options)
          parser.on("-h", "--help", "show this text") { @help = true }
        end
      end

      def clients(parser, options)
        rate = Server::Limits::DEFAULTS[:rate]
        parser.on("--min-rate N", OptionParser::DecimalInteger,
                  "bytes a second that a client must take of an answer (#{rate})") do |number|
          options[:limits][:rate] = checked(number) { Server::Limits.new(rate: number) }
        end
        parser.on("--cancel-disconnected", "cancel a request when its client leaves") do
          options[:cancel_disconnected] = true
        end
      end

      # What the block refuses for an argument of its own is said of the option.
      def checked(value)
        yield
        value
      rescue ArgumentError => e
        ExactOptions.refuse(value, e.message[/\A(?:\w+: )?(.*?)(?:, not .*)?\z/m, 1])
      end

      def within(range, number)
        range.cover?(number) ? number : ExactOptions.refuse(number, "must be from #{range.begin} to #{range.end}")
      end

      def seconds(number) = checked(number) { Check.seconds("seconds", number) }

      def url(text) = checked(text) { Server::Listener.address(text) }

      def host(name)
        ExactOptions.refuse(name, "must not be empty") if name.empty?

        Addrinfo.tcp(name.delete("[]"), 0) && name
      rescue SocketError => e
        ExactOptions.refuse(name, "has no address here: #{e.message}")
      end

      def addresses(parser, options)
        parser.on("-b", "--bind URL", "listen at tcp://HOST:PORT, unix:/PATH or ssl://HOST:PORT?cert=FILE&key=FILE",
                  "(tcp://127.0.0.1:9292); may be given several times") { |text| (options[:bind] ||= []) << url(text) }
        parser.on("-o", "--host HOST", "listen on this address (127.0.0.1)") { |name| options[:host] = host(name) }
        parser.on("-p", "--port PORT", OptionParser::DecimalInteger, "listen on this port (9292)") do |port|
          options[:port] = within(0..65_535, port)
        end
        parser.on("--[no-]http2", "speak HTTP/2 (if protocol-http2 is installed)") { |wanted| options[:http2] = wanted }
      end

      def processes(parser, options)
        parser.on("--workers N", OptionParser::DecimalInteger,
                  "number of worker processes; 0: serve in this process (0)") do |number|
          options[:workers] = within(0..WORKERS_MAX, number)
        end
        parser.on("--preload", "load the application once, before the workers start") { options[:preload] = true }
        parser.on("--backend NAME", %w[uring epoll], "uring or epoll (uring, if the kernel allows it)") do |name|
          options[:backend] = name
        end
        parser.on("--drain SECONDS", OptionParser::DecimalNumeric,
                  "time that requests have to finish when the server stops (30)") do |number|
          options[:drain] = seconds(number)
        end
        parser.on("--drain-delay SECONDS", OptionParser::DecimalNumeric,
                  "time after TERM in which it still serves, but /ready fails (0)") do |number|
          options[:delay] = number.zero? ? number : seconds(number)
        end
        parser.on("--control URL", "answer /live, /ready and /metrics at this URL") do |text|
          options[:control] = url(text)
        end
        parser.on("--access-log [FILE]", "write a line for each request to FILE, or to standard output") do |path|
          options[:access_log] = path || $stdout
        end
      end
    end
  end
end
