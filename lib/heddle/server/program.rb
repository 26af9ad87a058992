# frozen_string_literal: true

require_relative "settings"
require_relative "sockets"
require_relative "serving_process"
require_relative "supervisor"

module Heddle
  class Server
    # A server as a whole program: `heddle serve`, `rackup -s heddle`.
    #
    # @private
    class Program
      # @param settings [Settings]
      def initialize(settings)
        @settings = settings
      end

      # Serves until a signal ends it.
      #
      # @return [Integer] the exit status
      def run
        @settings.limits = Limits.new(**@settings.limits)
        @settings.http2 = ServerLibraries.http2?(@settings.http2)
        @sockets = Sockets.new(@settings.bind, [@settings.workers, 1].max, http2: @settings.http2)
        outcome = @settings.workers.zero? ? serve : supervise
        return replace if outcome == :exec

        @sockets.close
        0
      end

      private

      def serve
        process = ServingProcess.new(@settings, @sockets.for_worker(0))
        @settings.application
        announce
        @settings.notify("READY=1")
        signals = { "TERM" => :stop, "INT" => :stop, "HUP" => :exec, "USR2" => :exec }
        process.run(signals).tap { |meaning| @settings.notify("STOPPING=1") if meaning == :stop }
      end

      def supervise
        @supervisor = Supervisor.new(@settings, @sockets)
        announce
        @supervisor.run
      end

      def announce
        processes = @settings.workers.zero? ? "" : ", #{@settings.workers} workers"
        @settings.say("listening on #{@sockets.addresses.join(", ")} (process #{Process.pid}#{processes})")
      end

      # The program is started once more in this process, with the sockets that it has.
      def replace
        environment, descriptors = @sockets.handed_over
        environment = environment.merge(@supervisor.handed_over) if @supervisor
        @settings.notify("RELOADING=1")
        exec(environment, RbConfig.ruby, *ruby_options, $PROGRAM_NAME, *ARGV, **descriptors)
      end

      # Which Heddle it is, where it does not come from a gem.
      def ruby_options = $LOAD_PATH.include?(lib = File.expand_path("../..", __dir__)) ? ["-I", lib] : []
    end
  end
end
