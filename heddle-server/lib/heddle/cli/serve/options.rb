# frozen_string_literal: true

require "heddle/cli/options"
require_relative "../../server/address"
require_relative "../../server/check"
require_relative "../../server/limits"
require_relative "../../server/process/settings"

module Heddle
  module CLI
    class Serve
      # The options of `heddle serve`, of the command line and of a configuration file.
      class Options
        # The options of limits, with their descriptions.
        LIMITS = {
          connections: "connections that are open at once", requests: "requests that are in the application at once",
          client_requests: "the same of one client's address", request_time: "seconds until an answer begins",
          streams: "requests at once in one HTTP/2 connection", body_size: "size of a request's body, in bytes",
          head_size: "size of a request's headers, in bytes", head_time: "seconds until the headers must be there",
          stall: "seconds that a read or a write may take", idle: "seconds that a connection may be idle"
        }.freeze
        WORKERS_MAX = 1024
        TIME_SLICES = 0.001..10 # seconds
        INTEGER = OptionParser::DecimalInteger
        NUMBER = OptionParser::DecimalNumeric
        private_constant :LIMITS, :INTEGER, :NUMBER, :TIME_SLICES

        # @return [Hash{Symbol => Object}] the options that were given; the limits are in a Hash of their own
        attr_reader :given

        def initialize
          @given = { limits: {} }
          @parser = CLI::Options.new { |parser| add_to(parser) }
        end

        # @param args [Array<String>]
        # @return [Array<String>] the arguments that are not options
        # @raise [OptionParser::ParseError]
        def parse(args) = @parser.parse(args)

        # @return [String] a line or two for each option
        def help = @parser.summarize.join

        # @return [Array<String>] their long names, without the dashes
        def names = @parser.top.long.keys - %w[help config]

        # @param number [Integer]
        # @raise [OptionParser::InvalidArgument]
        def self.within(range, number)
          range.cover?(number) ? number : CLI::Options.refuse(number, "must be from #{range.begin} to #{range.end}")
        end

        private

        def add_to(parser)
          addresses(parser)
          processes(parser)
          workers(parser)
          ends(parser)
          files(parser)
          limits(parser)
          clients(parser)
          parser.on("-h", "--help", "show this text") { @given[:help] = true }
        end

        # Runs the block. When it refuses an argument, the error names the option.
        def checked(value)
          yield
          value
        rescue ArgumentError => e
          CLI::Options.refuse(value, e.message[/\A(?:\w+: )?(.*?)(?:, not .*)?\z/m, 1])
        end

        def seconds(number) = checked(number) { Server::Check.seconds("seconds", number) }

        def positive(number) = checked(number) { Server::Check.positive_integer("number", number) }

        def url(text) = checked(text) { Server::Address.new(text) }

        def host(name)
          CLI::Options.refuse(name, "must not be empty") if name.empty?

          Addrinfo.tcp(name.delete("[]"), 0) && name
        rescue SocketError => e
          CLI::Options.refuse(name, "has no address here: #{e.message}")
        end

        def addresses(parser)
          parser.on("-b", "--bind URL", "listen at tcp://HOST:PORT, unix:/PATH?mode=0660, unix:@NAME or",
                    "ssl://HOST:PORT?cert=FILE&key=FILE (tcp://127.0.0.1:9292);",
                    "may be given several times") { |text| (@given[:bind] ||= []) << url(text) }
          parser.on("-o", "--host HOST", "listen on this address (127.0.0.1)") { |name| @given[:host] = host(name) }
          parser.on("-p", "--port PORT", INTEGER, "listen on this port ($PORT, or 9292)") do |port|
            @given[:port] = self.class.within(0..65_535, port)
          end
          parser.on("--[no-]http2", "speak HTTP/2 (yes)") do |wanted|
            @given[:http2] = wanted
          end
        end

        def processes(parser)
          parser.on("--workers N", INTEGER,
                    "number of worker processes; 0: serve in this process", "($WEB_CONCURRENCY, or 0)") do |number|
            @given[:workers] = self.class.within(0..WORKERS_MAX, number)
          end
          parser.on("--preload", "load the application once, before the workers start") { @given[:preload] = true }
          parser.on("--backend NAME", %w[uring epoll kqueue poll],
                    "uring, epoll, kqueue or poll (the first that works)") { |name| @given[:backend] = name }
          parser.on("--time-slice SECONDS", NUMBER,
                    "time after which a request that computes lets others run;",
                    "0: never ($HEDDLE_TIME_SLICE, or #{Server::Settings::TIME_SLICE || 0})") do |number|
            @given[:time_slice] = number.zero? ? false : self.class.within(TIME_SLICES, number)
          end
        end

        def workers(parser)
          parser.on("--boot-timeout SECONDS", NUMBER, "time that a worker has to load the application (60)") do |number|
            @given[:boot_timeout] = seconds(number)
          end
          parser.on("--worker-timeout SECONDS", NUMBER,
                    "time after which a worker that hangs is replaced (60)") do |number|
            @given[:worker_timeout] = seconds(number)
          end
          parser.on("--worker-age SECONDS", NUMBER, "time after which a worker is replaced (never)") do |number|
            @given[:worker_age] = seconds(number)
          end
          parser.on("--worker-memory BYTES", INTEGER,
                    "memory of its own with which a worker is replaced (never)") do |number|
            @given[:worker_memory] = positive(number)
          end
          parser.on("--worker-requests N", INTEGER, "requests after which a worker is replaced (never)") do |number|
            @given[:worker_requests] = positive(number)
          end
        end

        def ends(parser)
          parser.on("--drain SECONDS", NUMBER,
                    "time that requests have to finish when the server stops (30)") do |number|
            @given[:drain] = seconds(number)
          end
          parser.on("--drain-delay SECONDS", NUMBER,
                    "time after TERM in which it still serves, but /ready fails (0)") do |number|
            @given[:delay] = number.zero? ? number : seconds(number)
          end
        end

        def files(parser)
          parser.on("-C", "--config FILE", "a configuration file in Ruby (config/heddle.rb, if it exists)") do |path|
            @given[:config] = path
          end
          parser.on("--directory DIR", "the folder of the application; HUP and USR2 follow a link") do |path|
            @given[:directory] = path
          end
          parser.on("-e", "--environment NAME", "RACK_ENV and RAILS_ENV of the application") do |name|
            @given[:environment] = name
          end
          parser.on("--pidfile FILE", "write the number of the process to FILE") { |path| @given[:pidfile] = path }
          parser.on("--control URL", "answer /live, /ready and /metrics at this URL") do |text|
            @given[:control] = url(text)
          end
          parser.on("--access-log [FILE]", "write a line for each request to FILE, or to standard output") do |path|
            @given[:access_log] = path || $stdout
          end
        end

        def clients(parser)
          rate = Server::Limits::DEFAULTS[:rate]
          parser.on("--min-rate N", INTEGER,
                    "bytes a second that a client must take of an answer (#{rate})") do |number|
            @given[:limits][:rate] = checked(number) { Server::Limits.new(rate: number) }
          end
          parser.on("--cancel-disconnected", "cancel a request when its client leaves") do
            @given[:cancel_disconnected] = true
          end
        end

        def limits(parser)
          LIMITS.each do |name, what|
            kind = Server::Limits::TIMES.include?(name) ? NUMBER : INTEGER
            parser.on("--max-#{name.to_s.tr("_", "-")} N", kind,
                      "limit: #{what} (#{Server::Limits::DEFAULTS[name] || "none"})") do |number|
              @given[:limits][name] = checked(number) { Server::Limits.new(name => number) }
            end
          end
        end
      end
    end
  end
end
