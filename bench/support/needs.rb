# frozen_string_literal: true

require_relative "real_server"

module Bench
  # What rows need beside Ruby and a peer: servers, which are started for this run, programs and gems.
  class Needs
    # For 30,000 connections.
    FILES = 32_000

    # What to add to the environment of the children, and facts for the report.
    attr_reader :env, :facts

    # A row's need is the name of a private method below.
    # @param gems [PeerGems]
    # @param install [Boolean] whether what is missing may be installed
    def initialize(gems, install:)
      @gems = gems
      @install = install
      @env = {}
      @facts = {}
      @met = {}
    end

    # @return [String, nil] why the row cannot run here
    def missing(row)
      row.all_needs.lazy.filter_map { |name| @met.fetch(name) { @met[name] = meet(name) } }.first
    end

    private

    def meet(name)
      __send__(name)
      nil
    rescue Missing => e
      e.message
    end

    # Both ends of each connection are in processes of their own, which inherit the limit.
    def open_files
      Process.setrlimit(:NOFILE, FILES, [FILES, Process.getrlimit(:NOFILE).last].max)
    rescue SystemCallError => e
      raise Missing, "#{FILES} open files are not allowed (ulimit -Hn): #{e.message}"
    end

    def memcached = server("memcached", "memcached", "dalli")

    def postgres = server("PostgreSQL", "postgres", "pg")

    def redis = server("Redis", "redis", "redis-client")

    def wrk
      @env["BENCH_WRK"] = RealServer.program("wrk", install: @install)
      @facts["wrk"] = IO.popen([@env["BENCH_WRK"], "-v"], err: %i[child out], &:read)[/wrk \S*?(\d[\d.]*)/, 1]
    end

    # Its port is in BENCH_NAME_PORT.
    def server(title, name, client)
      gem_missing = @gems.missing_gem(client)
      raise Missing, "the gem #{client} is missing: #{gem_missing}" if gem_missing

      running = RealServer.start(name, install: @install)
      @env["BENCH_#{name.upcase}_PORT"] = running.port.to_s
      @facts[title] = "#{running.version}, #{client} #{@gems.version(client)}"
    end
  end
end
