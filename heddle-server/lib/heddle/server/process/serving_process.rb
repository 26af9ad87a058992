# frozen_string_literal: true

require_relative "../../server"
require_relative "control"
require_relative "signals"
require_relative "thread_state"
require_relative "worker"

module Heddle
  class Server
    # A process that serves: on its own, or as a worker of a {Supervisor}.
    #
    # @private
    class ServingProcess
      # Meanings of the signals that end the server without a successor.
      STOPS = %i[stop stop_at_once].freeze
      # Meanings of the signals that end this process. A worker receives :leave when another worker takes its place.
      ENDS = [*STOPS, :leave, :take_over].freeze
      # Seconds between two beats of a worker, at most.
      BEAT = 5
      # The most requests that a line of the log names.
      NAMED = 5
      private_constant :ENDS, :BEAT, :NAMED

      # @param settings [Settings]
      # @param listeners [Array<Listener>]
      # @param signals [Signals] with the meanings :stop, :stop_at_once, :leave, :reopen, :restart, :exec and :take_over
      # @param control [Listener, nil]
      # @param worker [Integer] its number
      # @param folder [String, nil] where the workers meet: see {Control}
      # @param lifeline [IO, nil] the process stops when this IO ends
      # @param channel [IO, nil] to the supervisor: see {Worker}
      # @param kept [Sockets, nil] the sockets that it keeps open for the program that takes its place
      def initialize(settings, listeners, signals, control: nil, worker: 0, folder: nil, lifeline: nil, channel: nil,
                     kept: nil)
        @settings = settings
        @listeners = listeners
        @signals = signals
        @control_listener = control
        @worker = worker
        @folder = folder
        @lifeline = lifeline
        @channel = channel
        @kept = kept
        @hurry = channel ? %i[leave] : STOPS
      end

      # Serves until a signal stops it.
      #
      # @yield when it listens
      # @return [Symbol] the meaning of the signal that stopped it
      def run(&listening)
        server = Server.new(@settings.application, bind: @listeners, limits: @settings.limits,
                                                   access_log: @settings.access_log, http2: @settings.http2,
                                                   cancel_disconnected: @settings.cancel_disconnected)
        Heddle.run(backend: @settings.backend, time_slice: @settings.time_slice) do
          start_control(server) if @control_listener
          in_background("signals") { follow_signals(server) }
          in_background("lifeline") { watch_lifeline } if @lifeline
          in_background("pulse") { pulse(server) }
          in_background("ready") { tell_ready(&listening) }
          server.run
        end
        @meaning || :stop
      end

      private

      def in_background(name, &) = Heddle.spawn(background: true, name:, &)

      def start_control(server)
        @control = Control.new(server, @control_listener, worker: @worker, folder: @folder)
        in_background("control") { @control.run }
      end

      def tell_ready
        yield if block_given?
        tell_supervisor(Worker::READY)
      end

      # Sends a message to the supervisor. If the supervisor has gone, the lifeline ends this process.
      def tell_supervisor(what)
        @channel&.write_nonblock(what, exception: false)
      rescue SystemCallError
        nil
      end

      # Reports to the supervisor that the loop turns, and whether the worker has had the requests after which it is
      # replaced.
      def pulse(server)
        state = ThreadState.new(@settings)
        loop do
          sleep([BEAT, @settings.worker_timeout / 4.0].min)
          tell_supervisor(Worker::BEAT)
          tell_supervisor(Worker::USED_UP) if @settings.worker_requests&.<=(server.counts[:responses].sum(&:last))
          state.look
        end
      end

      def follow_signals(server)
        until ENDS.include?(event = @signals.pop)
          reopen if %i[reopen restart].include?(event)
          try_program if %i[restart exec].include?(event)
        end
        stop(server, event)
      end

      def stop(server, meaning)
        @meaning = meaning
        @trial&.cancel
        @control&.leave unless %i[leave take_over].include?(meaning)
        delay if meaning == :stop && @settings.delay.positive?
        @kept&.abandon unless meaning == :take_over
        Heddle.spawn(name: "stop") { drain(server) }
        loop { heed(@signals.pop, server) } # until the server has ended
      end

      # Waits for the delay of the settings before a stop. A second signal ends the wait only if it comes from the
      # sender of the first signal. A worker therefore heeds the supervisor alone: systemd sends TERM to all processes.
      def delay
        ends = Clock.now + @settings.delay
        while (left = ends - Clock.now).positive?
          return if @hurry.include?(@signals.pop(timeout: left))
        end
      end

      def drain(server)
        say_requests("waits for", server)
        @control&.hand_over if @meaning == :leave
        server.stop(grace: @settings.drain) { say_requests("gives up", server) }
      end

      # Follows a signal that comes while the process ends. After a stop no program takes the place of this one, even if
      # a signal has asked for that before.
      def heed(event, server)
        if @meaning == :take_over && STOPS.include?(event)
          @meaning = event
          @kept.abandon
        elsif @hurry.include?(event)
          server.stop_now
        end
      end

      def say_requests(what, server)
        running = server.running
        return if running.empty?

        names = running.first(NAMED).map { |request, seconds| "#{request} (#{format("%.1f", seconds)} s)" }
        names << "..." if running.size > NAMED
        @settings.say("#{"worker #{@worker} " if @channel}#{what} #{running.size} " \
                      "request#{"s" if running.size > 1}: #{names.join(", ")}")
      end

      # Opens the logs and loads the certificates anew.
      def reopen
        @settings.reopen_logs
        [*@listeners, *@control_listener].each(&:reload)
      rescue ArgumentError => e
        @settings.say("a certificate stays as it is: #{e.message}") unless @channel # the supervisor has said it
      end

      # Tries another program, in a task: meanwhile this process serves.
      def try_program
        @trial&.cancel
        @settings.say("another program takes the place of this one, if it can")
        @trial = Heddle.spawn(background: true, isolated: true, name: "trial") do
          trial = @settings.successor.try
          status = Heddle.timeout(@settings.boot_timeout) { Process.wait2(trial).last }
          trial = nil
          status.success? ? @signals.push(:take_over) : stay("the other one cannot start (#{status})")
        rescue Heddle::TimeoutError, SystemCallError => e
          stay(e.message)
        ensure
          Process.kill(:KILL, trial) && Process.detach(trial) if trial
        end
      end

      def stay(reason) = @settings.say("this program goes on: #{reason}")

      def watch_lifeline
        @lifeline.read
        @signals.push(:leave) unless @meaning
      end
    end
  end
end
