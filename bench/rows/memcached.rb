# frozen_string_literal: true

require "timeout"

module Bench
  # What time limits cost a memcached client: memcache-client's table of 2009, rebuilt with dalli and a real memcached,
  # which is started for it.
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
    # beside::         total CPU and real seconds of its counterpart in 2009, and how many times those without a limit
    # socket_timeout:: dalli's option; from Ruby 3.2 on, dalli makes it the IO#timeout of its socket
    # patch::          what else has to be done, in a process of its own
    Variant = Struct.new(:title, :beside, :socket_timeout, :patch)

    VARIANTS = {
      "none" => Variant.new("no timeout", { cpu: "3.38 (1.00)", wall: "5.90 (1.00)" }),
      "socket" => Variant.new("IO#timeout (socket_timeout: 1)", { cpu: "3.37 (1.00)", wall: "5.84 (0.99)" }, LIMIT),
      "hybrid" => Variant.new("IO#timeout, and Timeout around each gets", { cpu: "8.76 (2.59)", wall: "9.36 (1.59)" },
                              LIMIT, -> { Dalli::Socket::TCP.prepend(TimedGets) }),
      "calls" => Variant.new("Timeout around each socket call", { cpu: "21.71 (6.42)", wall: "22.17 (3.76)" },
                             nil, -> { Dalli::Socket::TCP.prepend(TimedGets, TimedReadAndWrite) }),
      "operations" => Variant.new("Timeout around each get and set", nil,
                                  nil, -> { Dalli::Client.prepend(TimedClient) })
    }.freeze

    NOTE = "2009 is memcache-client on the Ruby and the machine of its day, in seconds for 30,000 operations; a " \
           "timer thread (SystemTimer) in place of Timeout took 14.36 CPU and 14.86 real seconds then."

    # memcache-client's "mixed" benchmark. Two entries of the ring are one memcached, as in 2009.
    class Workload
      KEYS = ["Short", "Sym1-2-3::45" * 8, "Long" * 40].freeze
      VALUE = [].freeze
      # In one iteration, half of them gets.
      OPERATIONS = 12

      def initialize(variant)
        require "dalli" # after Heddle, as in a program
        variant.patch&.call
        Dalli.logger.level = Logger::FATAL
        port = ENV.fetch("BENCH_MEMCACHED_PORT")
        @cache = Dalli::Client.new(%W[127.0.0.1:#{port} localhost:#{port}], socket_timeout: variant.socket_timeout)
      end

      # @return [Integer] how many gets gave back what was set
      def run(operations)
        right = 0
        (operations / OPERATIONS).times do
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

    class << self
      private

      # Rows of one batch; the first is the base of their ratios.
      def rows(batch, names, **options)
        VARIANTS.slice(*names).each do |name, variant|
          workload = nil
          Bench.row("#{batch}_#{name}", variant.title,
                    unit: "operation", operations: 30_000, multiple: Workload::OPERATIONS, batch:,
                    beside: variant.beside, base: "#{batch}_none", expect: ->(n) { n / 2 }, **options) do |peer, n|
            workload ||= Workload.new(variant)
            right = nil
            peer.run { peer.spawn { peer.measure { right = workload.run(n) } } }
            right
          end
        end
      end
    end

    Bench.group("memcached", "Time limits of a memcached client",
                peers: %w[heddle threads async], turns: 50, shuffle: true, own: "without a limit",
                figures: %i[cpu wall], beside: "2009", note: NOTE, needs: %i[memcached]) do
      rows("memcached", VARIANTS.keys)
    end

    # Two processes differ for other reasons, too.
    Bench.group("memcached_pair", "IO#timeout and no limit of a memcached client, in one process",
                peers: %w[heddle], turns: 500, share: true, shuffle: true, own: "without a limit",
                needs: %i[memcached]) do
      rows("memcached_pair", %w[none socket], goal: { "heddle" => 1.03 })
    end
  end
end
