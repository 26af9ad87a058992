# frozen_string_literal: true

require "socket"

module Heddle
  module Testing
    # Finds out whether the other end of a pipe or a socket is in this process: then a task or a thread of the program
    # will answer. It knows the descriptors of one moment. It calls the methods of Ruby that Heddle replaces by their
    # second names, because the loop, which asks, must not wait.
    class Ends
      FOLDER = "/proc/self/fd"
      LISTENS = 1
      # In struct tcp_info of a socket that listens: the number of connections that wait to be accepted.
      LINE_OF_TCP_INFO = "@24L"
      private_constant :FOLDER, :LISTENS, :LINE_OF_TCP_INFO

      # @private
      def self.original(receiver, name, argument)
        kept = :"__heddle_#{name}"
        receiver.__send__(receiver.respond_to?(kept, true) ? kept : name, argument) # HEDDLE_WITHOUT may keep Ruby's own
      end

      # @param io [IO, nil] nil: a descriptor that belongs to no IO
      # @return [Boolean] can only another process, or the machine, answer?
      def elsewhere?(io)
        return true unless io.is_a?(IO)
        return false if io.closed?

        case names[io.fileno]
        when /\Apipe:/ then other_end_of_pipe(io.fileno).nil?
        when /\Asocket:/ then elsewhere_from?(socket(io.fileno))
        else true
        end
      end

      private

      # Without this folder, anybody may answer.
      def names
        @names ||= Ends.original(Dir, :children, FOLDER).filter_map { |fd| [fd.to_i, name_of(fd)] if name_of(fd) }.to_h
      rescue Errno::ENOENT
        @names = {}
      end

      def name_of(descriptor)
        File.readlink("#{FOLDER}/#{descriptor}")
      rescue SystemCallError
        nil # the descriptor of the folder itself
      end

      # The link has the permissions of the descriptor: to read, to write, or both.
      def other_end_of_pipe(descriptor)
        own = mode(descriptor)
        names.find { |other, name| name == names[descriptor] && mode(other) != own }
      end

      def mode(descriptor) = Ends.original(File, :lstat, "#{FOLDER}/#{descriptor}").mode

      def socket(descriptor) = BasicSocket.for_fd(descriptor).tap { |socket| socket.autoclose = false }

      def elsewhere_from?(socket)
        return false if listens?(socket)
        return peer_process(socket) != Process.pid if socket.local_address.unix?

        here, there = ends_of(socket)
        !connections.include?([there, here]) && !full_lines.include?(there)
      rescue Errno::ENOTCONN
        socket.getsockopt(:SOCKET, :TYPE).int == ::Socket::SOCK_STREAM # a datagram may come from anybody
      end

      def listens?(socket) = socket.getsockopt(:SOCKET, :ACCEPTCONN).int == LISTENS

      def peer_process(socket) = socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i")

      def ends_of(socket) = [socket.local_address, socket.remote_address].map(&:inspect_sockaddr)

      # The two addresses of each connection of this process.
      def connections
        @connections ||= of_sockets { |socket| ends_of(socket) unless listens?(socket) }
      end

      # The addresses at which connections wait to be accepted.
      def full_lines
        @full_lines ||= of_sockets do |socket|
          waiting = listens?(socket) && socket.local_address.ip? &&
                    socket.getsockopt(:TCP, :INFO).data.unpack1(LINE_OF_TCP_INFO).positive?
          socket.local_address.inspect_sockaddr if waiting
        end
      end

      def of_sockets
        names.filter_map do |descriptor, name|
          yield socket(descriptor) if name.start_with?("socket:")
        rescue SystemCallError, SocketError
          nil # a socket of another kind, without a connection, or closed meanwhile
        end
      end
    end
    private_constant :Ends
  end
end
