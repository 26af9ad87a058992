# frozen_string_literal: true

require "heddle/server/process/program"
require "rackup/handler"

module Rackup
  module Handler # rubocop:disable Style/Documentation -- it is Rackup's
    # Serves an application for `rackup -s heddle` and `rails server -u heddle`, in one process, without supervision.
    # See Heddle::Server.
    module Heddle
      class << self
        # @param app [#call] a Rack application
        # @param options [Hash{Symbol => Object}] :Host and :Port, or :bind; see valid_options
        # @return [void]
        def run(app, **options)
          given = options.transform_keys(&:to_sym)
          bind = given[:bind] || ::Heddle::Server::Listener.url(given[:Host] || "127.0.0.1", given[:Port] || 9292)
          settings = ::Heddle::Server::Settings.new(app: app, bind: bind.split(","), backend: given[:backend],
                                                    drain: given[:drain] && Float(given[:drain]))
          yield(settings) if block_given?
          ::Heddle::Server::Program.new(settings).run
        end

        # @return [Hash{String => String}] the options for rackup's help
        def valid_options
          { "Host=HOST" => "address to listen on (127.0.0.1)", "Port=PORT" => "port to listen on (9292)",
            "bind=URLS" => "the same as URLs, with commas between them", "backend=NAME" => "uring, epoll or poll",
            "drain=SECONDS" => "time that requests have to finish (30)" }
        end
      end
    end

    register :heddle, Heddle
  end
end
