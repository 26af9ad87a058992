# frozen_string_literal: true

require "socket"
require_relative "../check"
require_relative "limits"

module Heddle
  class Server
    # What `heddle serve` and the Rackup handler were told.
    #
    # file::       the application's config.ru; nil if there is an app
    # app::        the application; nil: of the file, loaded where it is first asked for
    # bind::       [String] where to listen
    # workers::    how many processes serve; 0: this one
    # preload::    whether the application is loaded before the workers are started
    # backend::    nil, "uring" or "epoll"
    # limits::     see Limits
    # drain::      seconds that requests have to end
    # delay::      seconds after TERM in which it goes on, but tells that it is not ready
    # control::    where it answers health checks, and tells its figures; or nil
    # access_log:: an IO, or nil
    # cancel_disconnected:: whether a request is cancelled when its client leaves
    # http2::      whether it speaks HTTP/2; nil: where the gem is installed
    #
    # @private
    Settings = Struct.new(:file, :app, :bind, :workers, :preload, :backend, :limits, :drain, :delay, :control,
                          :access_log, :http2, :cancel_disconnected, keyword_init: true) do
      def initialize(**given)
        super
        self.bind ||= ["tcp://127.0.0.1:9292"]
        self.workers ||= 0
        self.limits ||= {}
        self.drain ||= 30
        self.delay ||= 0
        Check.seconds("drain", drain)
      end

      # @return [#call]
      def application = app || (self.app = load)

      # @param text [String] for who looks after the server
      def say(text)
        warn("heddle serve: #{text}")
      end

      # Tells systemd (sd_notify(3)), if it has asked for that.
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

      def load
        require "rack"
        ::Rack::Builder.parse_file(file)
      end
    end
  end
end
