# frozen_string_literal: true

require "fileutils"
require "tmpdir"
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
      FOLDER = "HEDDLE_SERVE_FOLDER"
      private_constant :FOLDER

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
        @sockets = Sockets.new(@settings.bind, [@settings.workers, 1].max, http2: @settings.http2,
                                                                           control: @settings.control)
        outcome = @settings.workers.zero? ? serve : supervise
        return replace if outcome == :exec

        @sockets.close
        FileUtils.rm_rf(@folder) if @folder
        0
      end

      private

      def serve
        process = ServingProcess.new(@settings, @sockets.for_worker(0), control: @sockets.control, kept: @sockets)
        @settings.application
        signals = { "TERM" => :stop, "INT" => :stop_at_once, "HUP" => :exec, "USR2" => :exec }
        meaning = process.run(signals) do
          announce
          @settings.notify("READY=1")
        end
        @settings.notify("STOPPING=1") unless meaning == :exec
        meaning
      end

      def supervise
        @folder = ENV.delete(FOLDER) || Dir.mktmpdir("heddle-serve-") if @settings.control
        @supervisor = Supervisor.new(@settings, @sockets, @folder)
        announce
        @supervisor.run
      end

      def announce
        processes = @settings.workers.zero? ? "" : ", #{@settings.workers} workers"
        @settings.say("listening on #{@sockets.addresses.join(", ")} (process #{Process.pid}#{processes})")
        @settings.say("health and metrics on #{@sockets.control_address}") if @settings.control
      end

      # The program is started once more in this process, with the sockets that it has.
      def replace
        environment, descriptors = @sockets.handed_over
        if @supervisor
          more = @supervisor.handed_over
          environment, descriptors = [environment, descriptors].zip(more).map { |one, other| one.merge(other) }
        end
        environment = environment.merge(FOLDER => @folder) if @folder
        @settings.notify("RELOADING=1")
        exec(environment, RbConfig.ruby, *ruby_options, $PROGRAM_NAME, *ARGV, **descriptors)
      end

      # Which Heddle it is, where it does not come from a gem.
      def ruby_options = $LOAD_PATH.include?(lib = File.expand_path("../..", __dir__)) ? ["-I", lib] : []
    end
  end
end
