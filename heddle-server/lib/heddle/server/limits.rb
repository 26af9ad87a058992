# frozen_string_literal: true

require_relative "check"

module Heddle
  class Server
    # The limits of a server. A request that exceeds a limit is answered with the status of that limit, and its
    # connection is closed.
    #
    # connections::  open at once; an idle connection is closed for a new one, and otherwise the new one gets a 503
    # requests::     in the application at once; further requests are answered with 503
    # client_requests:: requests of one client in the application at once; further ones are answered with 503. A client
    #                is an IPv4 address or an IPv6 network of 64 bits; UNIX sockets are not counted. If this is not
    #                given, it is three quarters of requests
    # request_time:: seconds until the application's answer begins; then the request is cancelled (503). nil: no limit
    # streams::      requests of one HTTP/2 connection at once; others are refused, and the client may send them again
    # head_size::    bytes of a request's first line and headers (431; 414 for a first line of more than 8 KiB)
    # headers::      the number of the headers (431)
    # body_size::    bytes of a request's body (413)
    # head_time::    seconds until the first line and the headers have come (408)
    # stall::        seconds that a read of the body may wait (408), and a write of the answer, which is then cut off
    # rate::         bytes a second that the client has to take of an answer that waits for it, over the time of stall
    # idle::         seconds between two requests, after which the connection is closed
    # handshake::    seconds that TLS may take to begin, after which the connection is closed
    # linger_size::  bytes that a client may still send after it was refused, or that the application did not read
    Limits = Data.define(:connections, :requests, :client_requests, :request_time, :streams, :head_size, :headers,
                         :body_size, :head_time, :stall, :rate, :idle, :handshake, :linger_size) do
      # @private
      # @param given [Limits, Hash{Symbol => Numeric}]
      # @return [Limits]
      def self.of(given)
        return given if given.is_a?(self)
        return new(**given) if given.is_a?(Hash)

        Check.refuse("limits: must be a Hash, not #{Check.shown(given)}")
      end

      # @param given [Hash{Symbol => Numeric}] the limits that differ from the defaults
      # @raise [ArgumentError]
      def initialize(**given)
        names = self.class.members
        unknown = (given.keys - names).first
        Check.refuse("limits: there is no #{Check.shown(unknown)} (there are #{names.join(", ")})") if unknown

        requests = given.fetch(:requests, Limits::DEFAULTS[:requests])
        part = { client_requests: requests - (requests / 4) } if requests.is_a?(Integer)
        super(**Limits::DEFAULTS, **part, **given)
        to_h.each do |name, value|
          next if value.nil? && Limits::DEFAULTS[name].nil?

          if Limits::TIMES.include?(name)
            Check.seconds(name, value)
          else
            Check.positive_integer(name, value)
          end
        end
      end
    end

    # The default limits.
    Limits::DEFAULTS = { connections: 10_000, requests: 2_500, client_requests: 1_875, request_time: nil, streams: 128,
                         head_size: 32 * 1024, headers: 100, body_size: 100 * 1024 * 1024, head_time: 10, stall: 30,
                         rate: 500, idle: 65, handshake: 10, linger_size: 256 * 1024 }.freeze
    # @private The names of the limits that are seconds.
    Limits::TIMES = %i[request_time head_time stall idle handshake].freeze
  end
end
