# frozen_string_literal: true

require_relative "../server"
require_relative "control"

module Heddle
  class Server
    # A process that serves: on its own, or as a worker of a {Supervisor}.
    #
    # @private
    class ServingProcess
      # The meanings of the signals that end the server, and put nothing in its place.
      STOPS = %i[stop stop_at_once].freeze

      # @param settings [Settings]
      # @param listeners [Array<Listener>]
      # @param control [Listener, nil]
      # @param worker [Integer] its number
      # @param folder [String, nil] where the workers meet: see {Control}
      # @param lifeline [IO, nil] it stops when this one ends
      # @param ready [IO, nil] told when it listens
      # @param kept [Sockets, nil] what it keeps open for the program that takes its place
      def initialize(settings, listeners, control: nil, worker: 0, folder: nil, lifeline: nil, ready: nil, kept: nil)
        @settings = settings
        @listeners = listeners
        @control_listener = control
        @worker = worker
        @folder = folder
        @lifeline = lifeline
        @ready = ready
        @kept = kept
        @signals = Thread::Queue.new
      end

      # Serves until a signal says that it is to stop.
      #
      # @param signals [Hash{String => Symbol}] what each signal means: :stop; :replace (another worker is there), or
      #   something else that needs no delay
      # @param once [String, nil] a signal that counts only once
      # @yield when it listens, and knows what the signals mean
      # @return [Symbol] the meaning of the signal that stopped it
      def run(signals, once: nil, &listening)
        signals.each { |name, meaning| follow(name, meaning, once: name == once) }
        server = Server.new(@settings.application, bind: @listeners, limits: @settings.limits,
                                                   access_log: @settings.access_log, http2: @settings.http2,
                                                   cancel_disconnected: @settings.cancel_disconnected)
        Heddle.run(backend: @settings.backend) do
          start_control(server) if @control_listener
          Heddle.spawn(background: true, name: "signals") { wait_for_signal(server) }
          Heddle.spawn(background: true, name: "lifeline") { watch_lifeline } if @lifeline
          Heddle.spawn(background: true) { tell_ready(&listening) }
          server.run
        end
        heed(@signals.pop) until @signals.empty?
        @meaning || :stop
      end

      private

      def follow(name, meaning, once:)
        trap(name) do
          trap(name, "IGNORE") if once
          @signals << meaning
        end
      end

      def start_control(server)
        @control = Control.new(server, @control_listener, worker: @worker, folder: @folder)
        Heddle.spawn(background: true, name: "control") { @control.run }
      end

      def tell_ready
        yield if block_given?
        @ready&.write("ready")
        @ready&.close
      end

      # Another signal ends what the last one waits for.
      def wait_for_signal(server)
        @meaning = meaning = @signals.pop
        @stopping = true
        @control&.leave unless meaning == :replace
        @signals.pop(timeout: @settings.delay) if meaning == :stop
        @kept&.abandon unless meaning == :exec
        Heddle.spawn(name: "stop") do
          @control&.hand_over if meaning == :replace
          server.stop(grace: @settings.drain)
        end
        Heddle.spawn(background: true, name: "signals") do
          heed(@signals.pop)
          server.stop_now
        end
      end

      # What is to stop is not replaced, also if it was told that before.
      def heed(meaning)
        return unless @meaning == :exec && STOPS.include?(meaning)

        @meaning = meaning
        @kept&.abandon
      end

      def watch_lifeline
        @lifeline.read
        @signals << :stop_at_once unless @stopping
      end
    end
  end
end
