# frozen_string_literal: true

module TestSupport
  # What plain Ruby says, and what Heddle does.
  module PlainRuby
    # Calls the block in a thread without a scheduler, with false, and in a fiber of Heddle, with true.
    #
    # @return [Array] the two values
    def in_both
      [Thread.new { yield false }.value, reactor { yield true }]
    end

    # A value, with the encodings of its strings, or an exception.
    def outcome
      describe(yield)
    rescue StandardError => e
      [e.class, e.message]
    end

    def describe(value)
      case value
      when Array then value.map { |one| describe(one) }
      when String then [value, value.encoding]
      else value
      end
    end

    # Two connected ends.
    #
    # @param kind [String] "pipe", "unix", "tcp", or "udp"
    def connection(kind)
      case kind
      when "pipe" then IO.pipe.each { |io| keep(io) }
      when "unix" then socket_pair
      when "udp" then udp_pair
      else
        server = keep(TCPServer.new("127.0.0.1", 0))
        [keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port)), keep(server.accept)]
      end
    end

    def udp_pair
      one, other = Array.new(2) { keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) } }
      [[one, other], [other, one]].each { |from, to| from.connect("127.0.0.1", to.local_address.ip_port) }
      [one, other]
    end
  end
end
