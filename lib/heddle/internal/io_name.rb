# frozen_string_literal: true

module Heddle
  # Names an IO for a dump or a report.
  module IOName
    class << self
      # @param io [IO]
      # @return [String]
      def of(io)
        number = io.fileno
        "#{io.class} #{where(io, number)} (descriptor #{number})"
      rescue IOError
        "a closed #{io.class}"
      end

      private

      def where(io, number)
        return [address(io.local_address), peer(io)].compact.join(" -> ") if io.is_a?(BasicSocket)

        File.readlink("/proc/self/fd/#{number}")
      rescue SystemCallError, SocketError
        "?"
      end

      # @return [String, nil] nil: it has no peer, for example a server socket
      def peer(socket)
        address(socket.remote_address)
      rescue SystemCallError
        nil
      end

      def address(addrinfo)
        return addrinfo.inspect_sockaddr unless addrinfo.unix? && addrinfo.unix_path.empty?

        "unnamed"
      end
    end
  end
  private_constant :IOName
end
