# frozen_string_literal: true

require_relative "../server"

module Heddle
  class Server
    # A process that serves: on its own, or as a worker of a {Supervisor}.
    #
    # @private
    class ServingProcess
      # @param settings [Settings]
      # @param listeners [Array<Listener>]
      # @param lifeline [IO, nil] it stops when this one ends
      # @param ready [IO, nil] told when it listens
      def initialize(settings, listeners, lifeline: nil, ready: nil)
        @settings = settings
        @listeners = listeners
        @lifeline = lifeline
        @ready = ready
        @signals = Thread::Queue.new
      end

      # Serves until a signal says that it is to stop.
      #
      # @param signals [Hash{String => Symbol}] what each signal means
      # @return [Symbol] the meaning of the signal that stopped it
      def run(signals = { "TERM" => :stop, "INT" => :stop })
        signals.each { |name, meaning| trap(name) { @signals << meaning } }
        server = Server.new(@settings.application, bind: @listeners, limits: @settings.limits,
                                                   access_log: @settings.access_log, http2: @settings.http2)
        Heddle.run(backend: @settings.backend) do
          Heddle.spawn(background: true, name: "signals") { @meaning = wait_for_signal(server) }
          Heddle.spawn(background: true, name: "lifeline") { watch_lifeline } if @lifeline
          Heddle.spawn(background: true) { tell_ready }
          server.run
        end
        @meaning || :stop
      end

      private

      def tell_ready
        @ready&.write("ready")
        @ready&.close
      end

      # The second signal ends what the first one waits for.
      def wait_for_signal(server)
        meaning = @signals.pop
        Heddle.spawn(name: "stop") { server.stop(grace: @settings.drain) }
        Heddle.spawn(background: true, name: "signals") do
          @signals.pop
          server.stop_now
        end
        meaning
      end

      def watch_lifeline
        @lifeline.read
        @signals << :stop
      end
    end
  end
end
