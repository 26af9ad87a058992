# frozen_string_literal: true

require "socket"
require_relative "../check"
require_relative "../limits"

module Heddle
  class Server
    # The settings of `heddle serve` and of the Rackup handler.
    #
    # file::            the application's config.ru; nil if there is an app
    # app::             the application; nil: it is loaded from the file when it is first needed
    # bind::            [Array<String>] where to listen; nil: at the sockets of systemd, or at the default address
    # workers::         how many processes serve; 0: this process alone
    # preload::         whether the application is loaded before the workers are started
    # backend::         nil, "uring", "epoll", "kqueue" or "poll"
    # time_slice::      see Heddle.run; nil: HEDDLE_TIME_SLICE, else TIME_SLICE where time slices work
    # limits::          see Limits
    # drain::           seconds that requests have to end
    # delay::           seconds after TERM in which it goes on, but says that it is not ready
    # control::         where it answers health checks and requests for its figures; or nil
    # access_log::      an IO, or nil
    # cancel_disconnected:: whether a request is cancelled when its client leaves
    # http2::           whether it speaks HTTP/2
    # program::         the path of the command, for the program that takes the place of this one; or nil
    # directory::       the folder of the application, which may be a link to it; or nil
    # pidfile::         where the number of this process is written; or nil
    # hooks::           [Hash{Symbol => Array<#call>}] of the configuration file: see CLI::Serve::Configuration
    # worker_timeout::  seconds after which a worker whose loop does not turn is ended
    # boot_timeout::    seconds that a worker has to load the application
    # worker_age::      seconds after which a worker is replaced; or nil
    # worker_memory::   bytes of its own memory at which a worker is replaced; or nil
    # worker_requests:: requests after which a worker is replaced; or nil
    #
    # @private
    Settings = Struct.new(:file, :app, :bind, :workers, :preload, :backend, :limits, :drain, :delay, :control,
                          :access_log, :http2, :program, :directory, :pidfile, :hooks, :worker_timeout, :boot_timeout,
                          :worker_age, :worker_memory, :worker_requests, :cancel_disconnected, :time_slice,
                          keyword_init: true) do
      def initialize(**given)
        super
        self.workers ||= 0
        self.limits ||= {}
        self.http2 = true if http2.nil?
        self.drain ||= 30
        self.delay ||= 0
        self.hooks ||= {}
        self.worker_timeout ||= 60
        self.boot_timeout ||= 60
        self.time_slice = default_time_slice if time_slice.nil?
        Check.seconds("drain", drain)
      end

      # Returns the application. It is loaded when this is first called.
      #
      # @return [#call]
      def application
        return app if @made_safe

        self.app ||= load
        ThreadState.new(self).make_safe
        @made_safe = true
        app
      end

      # @return [Boolean] whether workers are replaced after some time
      def recycle? = [worker_age, worker_memory, worker_requests].any?

      # @return [Successor]
      def successor = @successor ||= Successor.new(self)

      # Enters the application's folder. A folder that is a link may lead to another folder than before.
      #
      # @raise [SystemCallError]
      def enter_directory
        Dir.chdir(directory) if directory
      end

      # Opens the access log anew, after somebody has renamed its file.
      #
      # @return [void]
      def reopen_logs
        return unless access_log.is_a?(File)

        access_log.reopen(access_log.path, "a")
        access_log.sync = true
      rescue SystemCallError => e
        say("the access log stays as it is: #{e.message}")
      end

      # Calls the hooks of a name.
      #
      # @param name [Symbol] the name of the hooks
      # @raise [Exception] the error of a hook without which no worker may serve; the errors of other hooks are only
      #   reported
      def call_hooks(name, *)
        hooks.fetch(name, []).each { |hook| hook.call(*) }
      rescue StandardError => e
        raise if %i[before_fork on_worker_boot].include?(name)

        say("#{name}: #{e.full_message(highlight: false)}")
      end

      # Notifies systemd that READY=1 comes once more.
      def notify_reloading
        notify("RELOADING=1\nMONOTONIC_USEC=#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)}")
      end

      # @param text [String] a message for the person who runs the server
      def say(text)
        warn("heddle serve: #{text}")
      end

      # Notifies systemd (sd_notify(3)), if it has asked for that.
      #
      # @param state [String]
      def notify(state)
        path = ENV.fetch("NOTIFY_SOCKET", "")
        return if path.empty?

        ::Socket.open(:UNIX, :DGRAM) do |socket|
          socket.connect(Addrinfo.unix(path.sub(/\A@/, "\0")))
          socket.send(state, 0)
        end
      rescue SystemCallError => e
        say("systemd cannot be told: #{e.message}")
      end

      private

      def default_time_slice
        Settings::TIME_SLICE if Heddle.time_slices? && ENV.fetch("HEDDLE_TIME_SLICE", "").empty?
      end

      def load
        require "rack"
        ::Rack::Builder.parse_file(file)
      end
    end

    # Seconds that a request may compute while others are ready, unless the settings say something else.
    Settings::TIME_SLICE = 0.005
  end
end
