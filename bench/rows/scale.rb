# frozen_string_literal: true

require "socket"
require_relative "waiting"

module Bench
  # From a hundred connections to thirty thousand, nearly all of them idle; and several processes and Ractors.
  module Scale
    PAIRS = 10
    MESSAGE = ("m" * 64).freeze
    ROUND_TRIPS = { unit: "round trip", operations: 200_000, figure: :wall, multiple: 40 }.freeze

    class << self
      # Round trips on socket pairs, in several processes at the same time.
      # @return [Integer] how many of the processes have done all of theirs
      def in_processes(peer, processes, number)
        pids = Array.new(processes) do
          fork { exit!(round_trips(peer, number / processes) == number / processes) }
        end
        pids.count { |pid| Process.wait2(pid).last.success? }
      end

      # Round trips on socket pairs, in several Ractors at the same time.
      # @return [Integer] how many of the Ractors have done all of theirs
      def in_ractors(ractors, number)
        running = Array.new(ractors) do
          Ractor.new(number / ractors) do |share|
            done = 0
            Heddle.run { Bench::Scale.ping_pong(Heddle.method(:spawn), share) { done += 1 } }
            done
          end
        end
        running.count { |ractor| (ractor.respond_to?(:value) ? ractor.value : ractor.take) == number / ractors }
      end

      # @yield after each round trip
      def ping_pong(spawn, number)
        Scale::PAIRS.times do
          near, far = UNIXSocket.pair
          spawn.call do
            loop { far.write(far.readpartial(64)) }
          rescue EOFError
            far.close
          end
          spawn.call do
            (number / Scale::PAIRS).times { near.write(Scale::MESSAGE) && near.readpartial(64) && yield }
            near.close
          end
        end
      end

      private

      def round_trips(peer, number)
        done = 0
        peer.run { ping_pong(peer.method(:spawn), number) { done += 1 } }
        done
      end
    end

    Bench.group("scale", "From a hundred connections to thirty thousand", rounds: 3) do
      also = { p99: ["the same, 99th percentile", "ping"], bytes: ["memory of each", "connection"],
               idle: ["CPU time of all of them, idle", "second"] }
      [100, 1000, 10_000, 30_000].each do |connections|
        Bench.row("scale_#{connections}", "ping one of #{connections} idle connections, median",
                  unit: "ping", operations: 5000, fixed: true, warm_up: false, figure: :p50, also:,
                  needs: (%i[open_files] if connections > Waiting::CONNECTIONS),
                  expect: ->(n) { n }) do |peer, n|
          said = Waiting.ping(peer, connections, n, idle: 2)
          peer.found.merge!(said.slice(:p50, :p99))
          said.fetch(:right)
        end
      end
      [1, 2, 4].each do |processes|
        Bench.row("scale_processes_#{processes}", "round trips, processes: #{processes}",
                  **ROUND_TRIPS, expect: ->(_) { processes }) do |peer, n|
          in_processes(peer, processes, n)
        end
      end
    end

    Bench.group("ractors", "In Ractors", rounds: 3, peers: %w[heddle-uring heddle-epoll]) do
      [1, 2].each do |ractors|
        Bench.row("ractors_#{ractors}", "round trips, Ractors: #{ractors}",
                  **ROUND_TRIPS, expect: ->(_) { ractors }) do |_, n|
          in_ractors(ractors, n)
        end
      end
    end
  end
end
