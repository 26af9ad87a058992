# frozen_string_literal: true

module Heddle
  module SharedIO
    # Names the remedy where two tasks share a connection, by the library that has given it to both.
    module Remedy
      POOL = "give each task a connection of its own, or take one from a pool (Heddle::Pool). "
      ANY = "#{POOL}If they may share it: Heddle.share_io(io).".freeze

      # A library stands before the libraries that it uses.
      LIBRARIES = {
        "activerecord" => "config.active_support.isolation_level = :fiber (without Rails: " \
                          "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber)",
        "sequel" => "Sequel.extension(:fiber_concurrency), before Sequel.connect",
        "excon" => "an Excon connection must not be shared: #{POOL}".strip,
        "redis-client" => "RedisClient.config(...).new_pool, for a RedisClient must not be shared",
        "pg" => "a PG::Connection must not be shared: #{POOL}".strip,
        "httpx" => "a session with the plugin :persistent must not be shared. One without it may be; or #{POOL}".strip,
        "http" => "a persistent client of HTTP.rb must not be shared: #{POOL}".strip,
        "net-http" => "a Net::HTTP that was started must not be shared: #{POOL}".strip
      }.each_value(&:freeze).freeze # for Ractors
      # The folder of the libraries that are part of Ruby.
      OWN = "#{RbConfig::CONFIG["rubylibdir"]}/".freeze
      private_constant :POOL, :ANY, :LIBRARIES, :OWN

      # @param frames [Array<String>]
      # @return [String]
      def self.of(frames)
        LIBRARIES.each do |name, remedy|
          return "#{name}: #{remedy}" if frames.any? { |frame| of_library?(frame, name) }
        end
        ANY
      end

      def self.of_library?(frame, name)
        frame.match?(%r{/#{name}(-[\d.]+[^/]*)?/lib/}) || frame.start_with?("#{OWN}#{name.tr("-", "/")}.rb:")
      end
      private_class_method :of_library?
    end
  end
end
