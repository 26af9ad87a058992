# frozen_string_literal: true

require_relative "../cli"
require_relative "options"
require_relative "open_files"
require_relative "demo/settings"

module Heddle
  module CLI
    # `heddle demo`
    #
    # @private
    class Demo
      # The longest time that the server may be asked to wait: shorter than Net::HTTP waits for an answer.
      DELAY_MAX_MS = 30_000

      # Descriptors that a client needs besides its connections.
      OTHER_FILES = 32

      ABOUT = <<~TEXT
        usage: heddle demo [OPTIONS]

        Measures how many HTTP requests per second a program makes to a server that is slow to answer. It makes 1,000
        requests with Net::HTTP, each on a new connection: one after another, then all at once with a thread for each,
        then all at once with a fiber for each, under Heddle. The server and each measurement run in a process of their
        own. The exit status is 0 if every answer was right.

      TEXT

      # @param args [Array<String>]
      # @return [Integer, :help] the exit status
      def call(args)
        settings = parse(args)
        return :help if @help

        OpenFiles.raise_limit
        warn_of_limit(settings)
        result = Runner.new(settings).run
        puts(@json ? result.to_json : Report.new(result))
        result.errors.zero? ? 0 : 1
      rescue Child::Failed => e
        warn("heddle demo: #{e.message}")
        1
      rescue Interrupt
        130
      end

      # @return [String]
      def help = ABOUT + parser({}).summarize.join

      private

      def parser(options)
        defaults = Settings.new
        Options.new do |on|
          on.on("--requests N", OptionParser::DecimalInteger, "how many requests (#{defaults.requests})") do |number|
            options[:requests] = at_least_one(number)
          end
          on.on("--delays LIST", "ms that the server takes to answer (#{defaults.delays.join(",")})") do |text|
            options[:delays] = delays(text)
          end
          on.on("--processes N", OptionParser::DecimalInteger, "also divide the requests among N processes (1)") do |n|
            options[:processes] = at_least_one(n)
          end
          on.on("--url URL", "a server of your own to ask; it must bear the load") { |url| options[:url] = url }
          on.on("--json", "print one line of JSON and nothing else") { @json = true }
          on.on("-h", "--help", "print this text") { @help = true }
        end
      end

      def at_least_one(number) = number < 1 ? Options.refuse(number, "must be at least 1") : number

      def delays(text)
        Options.refuse(text, "give ms: 0,10,50") unless /\A\d+(,\d+)*\z/.match?(text)

        text.split(",").map(&:to_i).each do |delay|
          Options.refuse(text, "at most #{DELAY_MAX_MS} ms") if delay > DELAY_MAX_MS
        end
      end

      def parse(args)
        options = {}
        rest = parser(options).parse(args)
        settings = Settings.new(**options)
        mistake =
          if rest.any? && !@help then "unexpected argument: #{rest.first}"
          elsif options[:url] && options[:delays] then "--url and --delays exclude each other"
          elsif !valid?(settings.url) then "invalid argument: --url #{settings.url} (give http://...)"
          elsif settings.processes > settings.requests
            "invalid argument: --processes #{settings.processes} (more than there are requests)"
          end
        mistake ? raise(UsageError, "heddle demo: #{mistake}") : settings
      rescue OptionParser::ParseError => e
        raise UsageError, "heddle demo: #{e.message}"
      end

      def valid?(url)
        url.nil? || (URI(url).is_a?(URI::HTTP) && !URI(url).hostname.to_s.empty?)
      rescue URI::InvalidURIError
        false
      end

      def warn_of_limit(settings)
        limit = OpenFiles.limit
        return if limit >= settings.requests + OTHER_FILES

        warn("heddle demo: only #{limit} files may be open at once (ulimit -n): some of the requests will fail")
      end
    end
  end
end

Heddle::CLI.add("demo", Heddle::CLI::Demo.new)
