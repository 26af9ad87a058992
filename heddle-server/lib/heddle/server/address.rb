# frozen_string_literal: true

require "socket"
require "uri"
require_relative "check"

module Heddle
  class Server
    # Reads an address of `--bind`. A URL that may mean something else than it seems to mean is refused: a path behind a
    # port, a UNIX socket with a host, a number in place of a host, an unknown option.
    #
    # @private
    class Address
      URLS = "tcp://HOST:PORT, ssl://HOST:PORT?cert=FILE&key=FILE, unix:/PATH?mode=0660 or unix:@NAME"
      PORT = 9292
      # The mode of the file of a UNIX socket. A proxy that runs as another user has to write to it. The folder can be
      # closed to others.
      MODE = 0o666
      FORMS = {
        "tcp" => %r{\Atcp://(?<host>\[[^\[\]/?#@]+\]|[^\[\]/?#@:\s]*)(?::(?<port>\d*))?\z}i,
        "ssl" => %r{\Assl://(?<host>\[[^\[\]/?#@]+\]|[^\[\]/?#@:\s]*)(?::(?<port>\d*))?(?:\?(?<query>[^#]*))?\z}i,
        "unix" => %r{\Aunix:(?://(?=[/@]))?(?:(?<path>/[^/?#][^?#]*)(?:\?(?<query>[^#]*))?|(?<name>@[^?#]+))\z}i
      }.freeze
      IPV4 = /\A\d{1,3}(\.\d{1,3}){3}\z/
      # Matches a host that the system takes for an IPv4 address, too: 8080 is 0.0.31.144.
      ODD_HOST = /\A(?:[\d.]+|0x\h+)\z/i
      private_constant :PORT, :MODE, :FORMS, :IPV4, :ODD_HOST

      # @return [Addrinfo]
      attr_reader :addrinfo
      # @return [Integer] the mode of the file of a UNIX socket
      attr_reader :mode
      # @return [Array(String, String), nil] the files of the certificate and of its key, for TLS
      attr_reader :files

      # @param url [String]
      # @raise [ArgumentError] whose message begins with "bind:"
      def initialize(url)
        @url = url
        form = FORMS[url[/\A[a-z]+/i].to_s.downcase]
        refuse unless (@parts = form&.match(url))

        @query = query
        form == FORMS["unix"] ? unix : tcp
        refuse("has an unknown option: #{@query.keys.first}") if @query.any?
      end

      private

      def refuse(reason = nil)
        Check.refuse(reason ? "bind: #{@url} #{reason}" : "bind: must be #{URLS}, not #{Check.shown(@url)}")
      end

      def query
        return {} unless @parts.names.include?("query") && @parts[:query]

        pairs = URI.decode_www_form(@parts[:query])
        refuse if pairs.uniq(&:first).size < pairs.size
        pairs.to_h
      rescue ArgumentError
        refuse
      end

      def unix
        mode = @query.delete("mode")
        refuse("has a mode that is no octal number such as 0660") unless mode.nil? || mode.match?(/\A0?[0-7]{3}\z/)
        @mode = mode ? mode.to_i(8) : MODE
        @addrinfo = Addrinfo.unix(@parts[:path] || @parts[:name].sub("@", "\0"))
      rescue ArgumentError => e
        raise if e.message.start_with?("bind:")

        refuse("has too long a path (#{e.message})")
      end

      def tcp
        host = @parts[:host].delete("[]")
        port = @parts[:port].to_s.empty? ? PORT : @parts[:port].to_i
        refuse if port > 65_535 || (host.match?(ODD_HOST) && !host.match?(IPV4))
        @files = %w[cert key].map { |name| file(name, @query.delete(name)) } if @url.match?(/\Assl/i)
        @addrinfo = Addrinfo.tcp(host.empty? ? "0.0.0.0" : host, port)
      rescue SocketError => e
        refuse("has no address here (#{e.message})")
      end

      def file(name, path)
        Check.refuse("bind: ssl:// needs #{name}=FILE") unless path
        return path if File.file?(path) && File.readable?(path)

        Check.refuse("bind: the file of #{name}=#{path} cannot be read")
      end
    end
  end
end
