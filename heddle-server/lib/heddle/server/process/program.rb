# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "settings"
require_relative "sockets"
require_relative "serving_process"
require_relative "supervisor"

module Heddle
  class Server
    # Runs a server as a whole program, for `heddle serve` and `rackup -s heddle`.
    #
    # @private
    class Program
      FOLDER = "HEDDLE_SERVE_FOLDER"
      # Signals that must not end the program while the next one starts, and that it need not hear then.
      RESTARTS = %w[HUP USR2 TTIN TTOU].freeze
      private_constant :FOLDER, :RESTARTS

      # @param settings [Settings]
      def initialize(settings)
        @settings = settings
      end

      # Serves until a signal ends it.
      #
      # @return [Integer] the exit status
      def run
        @settings.limits = Limits.new(**@settings.limits)
        return try if Successor.trial?

        @signals = Signals.new(meanings, others: %i[take_over])
        open
        outcome = @settings.workers.zero? ? serve : supervise
        outcome = run_again while %i[exec take_over].include?(outcome)
        close
        outcome == :failed ? 1 : 0
      end

      private

      # Returns the meanings of the signals. Without a command of its own (`rackup`, `rails server`) no program can take
      # the place of this one.
      def meanings
        stops = { "TERM" => :stop, "INT" => :stop_at_once }
        return stops unless @settings.program

        { **stops, "HUP" => :restart, "USR2" => :exec, "TTIN" => :more, "TTOU" => :fewer, "CHLD" => :child }
      end

      # Does all that comes before the server serves, and ends. The work that the application would do at its end is not
      # done.
      def try
        @settings.application if @settings.workers.zero? || @settings.preload
        $stderr.flush
        exit!(0)
      end

      def open
        @sockets = Sockets.new(@settings.bind, http2: @settings.http2, control: @settings.control,
                                               shared: @settings.workers.positive?)
        write_pidfile if @settings.pidfile
      end

      def close
        @sockets.close
        FileUtils.rm_rf(@folder) if @folder
        File.unlink(@settings.pidfile) if @settings.pidfile && File.read(@settings.pidfile).to_i == Process.pid
      rescue Errno::ENOENT
        nil
      end

      # Writes the number of this process into the pidfile. Nobody sees a half of it, because a complete file is
      # renamed.
      def write_pidfile
        new = "#{@settings.pidfile}.#{Process.pid}"
        File.write(new, "#{Process.pid}\n")
        File.rename(new, @settings.pidfile)
      rescue SystemCallError => e
        FileUtils.rm_f(new)
        @sockets.close
        raise ArgumentError, "--pidfile #{@settings.pidfile} cannot be written (#{e.class.new.message})"
      end

      def serve
        @signals.during(ServingProcess::STOPS, method(:stop_before_it_serves)) { @settings.application }
        @signals.take_back # the application may have set its own handlers
        process = ServingProcess.new(@settings, @sockets.for_process, @signals, control: @sockets.control,
                                                                                kept: @sockets)
        meaning = process.run do
          announce
          @settings.notify("READY=1")
          @settings.call_hooks(:on_booted)
        end
        @settings.notify("STOPPING=1") unless meaning == :take_over
        meaning
      end

      def stop_before_it_serves
        close
        exit!(0)
      end

      def supervise
        @folder = ENV.delete(FOLDER) || Dir.mktmpdir("heddle-serve-") if @settings.control
        @supervisor = Supervisor.new(@settings, @sockets, @signals, @folder)
        announce
        @supervisor.run { close }
      end

      def announce
        processes = @settings.workers.zero? ? "" : ", #{@settings.workers} workers"
        @settings.say("listening on #{@sockets.addresses.join(", ")} (process #{Process.pid}#{processes})")
        @settings.say("health and metrics on #{@sockets.control_address}") if @settings.control
      end

      # Starts the next program in this process, with the sockets of this one. If that is not possible, or a stop has
      # come meanwhile, this program goes on.
      def run_again
        @settings.call_hooks(:on_restart)
        hand_over if @signals.give_up(RESTARTS, unless_come: ServingProcess::STOPS)
        go_on
      rescue SystemCallError => e
        @settings.say("this program goes on: #{e.message}")
        go_on
      end

      def hand_over
        environment, descriptors = @sockets.handed_over
        if @supervisor
          more = @supervisor.handed_over
          environment, descriptors = [environment, descriptors].zip(more).map { |one, other| one.merge(other) }
        end
        environment = environment.merge(FOLDER => @folder) if @folder
        @settings.notify_reloading
        @settings.successor.take_over(environment, descriptors)
      end

      def go_on
        @signals.take_back
        return @supervisor.run { close } if @supervisor&.go_on

        @signals.come?(ServingProcess::STOPS) ? :stop : serve
      end
    end
  end
end
