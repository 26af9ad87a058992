# frozen_string_literal: true

require "dalli"
require "timeout"

module Bench
  # The ways to limit the time of memcached calls, and the "mixed" workload of memcache-client's benchmark of 2009.
  module Memcached
    LIMIT = 1

    # Timeout around dalli's reading of a line.
    module TimedGets
      def gets(...) = Timeout.timeout(LIMIT) { super }
    end

    # Timeout around the other calls of its socket.
    module TimedReadAndWrite
      def read(...) = Timeout.timeout(LIMIT) { super }

      def write(...) = Timeout.timeout(LIMIT) { super }
    end

    # Timeout around the operations of the client.
    module TimedClient
      def get(...) = Timeout.timeout(LIMIT) { super }

      def set(...) = Timeout.timeout(LIMIT) { super }
    end

    # title::          one line for people
    # year2009::       total CPU and real seconds of its counterpart in 2009
    # socket_timeout:: dalli's option; from Ruby 3.2 on, dalli makes it the IO#timeout of its socket
    # patch::          what else has to be done, in a process of its own
    Variant = Struct.new(:name, :title, :year2009, :socket_timeout, :patch)

    VARIANTS = [
      Variant.new("none", "no timeout", [3.38, 5.90]),
      Variant.new("socket", "IO#timeout (socket_timeout: 1)", [3.37, 5.84], LIMIT),
      Variant.new("hybrid", "IO#timeout, and Timeout around each gets", [8.76, 9.36], LIMIT,
                  -> { Dalli::Socket::TCP.prepend(TimedGets) }),
      Variant.new("calls", "Timeout around each socket call", [21.71, 22.17], nil,
                  -> { Dalli::Socket::TCP.prepend(TimedGets, TimedReadAndWrite) }),
      Variant.new("operations", "Timeout around each get and set", nil, nil,
                  -> { Dalli::Client.prepend(TimedClient) })
    ].to_h { |variant| [variant.name, variant] }.freeze

    # Two entries of the ring are one memcached, as in 2009.
    class Workload
      KEYS = ["Short", "Sym1-2-3::45" * 8, "Long" * 40].freeze
      VALUE = [].freeze
      OPERATIONS = 12

      # How many values so many iterations read.
      def self.gets(iterations) = 6 * iterations

      def initialize(variant, port)
        variant.patch&.call
        Dalli.logger.level = Logger::FATAL
        @cache = Dalli::Client.new(%W[127.0.0.1:#{port} localhost:#{port}], socket_timeout: variant.socket_timeout)
      end

      # @return [Integer] how many gets gave back what was set
      def run(iterations)
        right = 0
        iterations.times do
          KEYS.each { |key| @cache.set(key, VALUE) }
          KEYS.each { |key| right += 1 if @cache.get(key) == VALUE }
          KEYS.each do |key|
            @cache.set(key, VALUE)
            right += 1 if @cache.get(key) == VALUE
          end
        end
        right
      end
    end
  end
end
