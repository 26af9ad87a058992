# frozen_string_literal: true

require_relative "serving_process"
require_relative "signals"

module Heddle
  class Server
    # Runs the process of a worker, from its fork to its end.
    #
    # It ignores the signals that a terminal or systemd sends to all processes: INT, and a second TERM.
    #
    # @private
    class WorkerMain
      SIGNALS = { "TERM" => :stop, "QUIT" => :leave, "HUP" => :reopen, "INT" => nil, "USR2" => nil, "TTIN" => nil,
                  "TTOU" => nil }.freeze
      private_constant :SIGNALS

      # Sets the handlers of a worker that does not serve yet: TERM ends it.
      #
      # @return [void]
      def self.take_signals
        %w[TERM CHLD].each { |name| trap(name, "DEFAULT") }
        (SIGNALS.keys - ["TERM"]).each { |name| trap(name) { nil } }
      end

      # @param settings [Settings]
      # @param number [Integer]
      # @param channel [IO] to the supervisor
      # @param lifeline [IO] of the supervisor
      def initialize(settings, number, channel, lifeline)
        @settings = settings
        @number = number
        @channel = channel
        @lifeline = lifeline
      end

      # Runs the worker, and ends the process. It does not return, because at its end no code of the supervisor may run.
      #
      # @param sockets [Sockets]
      # @param folder [String, nil] where the workers meet: see {Control}
      def run(sockets, folder)
        Process.setproctitle("heddle serve: worker #{@number}")
        @settings.call_hooks(:on_worker_boot, @number)
        serve(sockets, folder)
        @settings.call_hooks(:on_worker_shutdown, @number)
        Heddle.drain # exit! runs no at_exit blocks
        exit!(0)
      rescue SignalException # it must stop before it serves
        exit!(1)
      rescue Exception => e # rubocop:disable Lint/RescueException -- it has to be said here
        @settings.say("worker #{@number}: #{e.full_message(highlight: false)}")
        exit!(1)
      end

      private

      def serve(sockets, folder)
        listeners = sockets.for_process
        control = sockets.control
        sockets.abandon # the supervisor keeps them
        @settings.application
        ServingProcess.new(@settings, listeners, Signals.new(SIGNALS, once: ["TERM"]),
                           control:, worker: @number, folder:, lifeline: @lifeline, channel: @channel).run
      end
    end
  end
end
