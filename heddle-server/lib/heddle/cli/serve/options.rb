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
          store(parser, :host, "-o", "--host HOST", "listen on this address (127.0.0.1)") { |name| host(name) }
          store(parser, :port, "-p", "--port PORT", INTEGER, "listen on this port ($PORT, or 9292)") do |port|
            self.class.within(0..65_535, port)
          end
          store(parser, :http2, "--[no-]http2", "speak HTTP/2 (yes)")
        end

        def processes(parser)
          store(parser, :workers, "--workers N", INTEGER, "number of worker processes; 0: serve in this process",
                "($WEB_CONCURRENCY, or 0)") { |number| self.class.within(0..WORKERS_MAX, number) }
          store(parser, :preload, "--preload", "load the application once, before the workers start")
          store(parser, :backend, "--backend NAME", %w[uring epoll kqueue poll],
                "uring, epoll, kqueue or poll (the first that works)")
          store(parser, :time_slice, "--time-slice SECONDS", NUMBER,
                "time after which a request that computes lets others run;",
                "0: never ($HEDDLE_TIME_SLICE, or #{Server::Settings::TIME_SLICE})") do |number|
            number.zero? ? false : self.class.within(TIME_SLICES, number)
          end
        end

        def workers(parser)
          { boot_timeout: "time that a worker has to load the application (60)",
            worker_timeout: "time after which a worker that hangs is replaced (60)",
            worker_age: "time after which a worker is replaced (never)" }.each do |name, what|
            store(parser, name, "--#{dashed(name)} SECONDS", NUMBER, what) { |number| seconds(number) }
          end
          store(parser, :worker_memory, "--worker-memory BYTES", INTEGER,
                "memory of its own with which a worker is replaced (never)") { |number| positive(number) }
          store(parser, :worker_requests, "--worker-requests N", INTEGER,
                "requests after which a worker is replaced (never)") { |number| positive(number) }
        end

        def ends(parser)
          store(parser, :drain, "--drain SECONDS", NUMBER,
                "time that requests have to finish when the server stops (30)") { |number| seconds(number) }
          store(parser, :delay, "--drain-delay SECONDS", NUMBER,
                "time after TERM in which it still serves, but /ready fails (0)") do |number|
            number.zero? ? number : seconds(number)
          end
        end

        def files(parser)
          store(parser, :config, "-C", "--config FILE",
                "a configuration file in Ruby (config/heddle.rb, if it exists)")
          store(parser, :directory, "--directory DIR", "the folder of the application; HUP and USR2 follow a link")
          store(parser, :environment, "-e", "--environment NAME", "RACK_ENV and RAILS_ENV of the application")
          store(parser, :pidfile, "--pidfile FILE", "write the number of the process to FILE")
          store(parser, :control, "--control URL", "answer /live, /ready and /metrics at this URL") { |text| url(text) }
          store(parser, :access_log, "--access-log [FILE]",
                "write a line for each request to FILE, or to standard output") { |path| path || $stdout }
        end

        def clients(parser)
          limit(parser, :rate, "--min-rate N", INTEGER,
                "bytes a second that a client must take of an answer (#{Server::Limits::DEFAULTS[:rate]})")
          store(parser, :cancel_disconnected, "--cancel-disconnected", "cancel a request when its client leaves")
        end

        def limits(parser)
          LIMITS.each do |name, what|
            limit(parser, name, "--max-#{dashed(name)} N", Server::Limits::TIMES.include?(name) ? NUMBER : INTEGER,
                  "limit: #{what} (#{Server::Limits::DEFAULTS[name] || "none"})")
          end
        end

        # Adds an option. What the block makes of its argument is given under this name.
        def store(parser, name, *description)
          parser.on(*description) { |value| @given[name] = block_given? ? yield(value) : value }
        end

        def limit(parser, name, *description)
          parser.on(*description) do |number|
            @given[:limits][name] = checked(number) { Server::Limits.new(name => number) }
          end
        end

        def dashed(name) = name.to_s.tr("_", "-")
      end
    end
  end
end
