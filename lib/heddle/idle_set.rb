# frozen_string_literal: true

require_relative "idle_set/selected"

module Heddle
  # A set of sockets that one task, or one thread, watches together until there is something to read. A task for each
  # socket would do the same, but it takes a fiber with its stack; a socket in a set takes an entry in the kernel and
  # one here. So a server can keep its idle connections in a set, and start a task when something has come.
  #
  # In the child of a fork, make a new set.
  #
  # @example A server whose idle connections have no task
  #   idle = Heddle::IdleSet.new
  #   Heddle.spawn { loop { idle.add(server.accept) } }
  #   loop do
  #     idle.wait.each { |socket| Heddle.spawn { answer(socket) && idle.add(socket) } }
  #   end
  class IdleSet
    # The calls of the kernel interface, in C. Each takes the IO of the set.
    module Poller
    end
    private_constant :Poller

    # @raise [SystemCallError] if the process has no descriptor left
    def initialize
      fd = Poller.create
      @calls = fd ? Poller : Selected
      @set = fd ? IO.for_fd(fd, "r") : Selected.new
      @ios = {} # by descriptor
      @buffered = [] # descriptors of IOs with bytes in Ruby's buffer, of which the kernel does not know
    end

    # @return [Integer] the number of sockets that are in it
    def size = @ios.size

    # @return [Boolean] whether no socket is in it
    def empty? = @ios.empty?

    # @return [Boolean] whether {#close} was called
    def closed? = @set.closed?

    # @return [String]
    def inspect = "#<#{self.class} #{closed? ? "closed" : "#{size} sockets"}>"

    # Adds a socket, or a pipe. Until {#wait} has returned it, nothing else may read from it, and it must be deleted
    # before it is closed. A task that waits in {#wait} takes notice at once.
    #
    # Bytes that an SSLSocket has read already are not seen. So read from it until it has to wait, and add it then.
    #
    # @param io [IO, #to_io]
    # @return [self]
    # @raise [ArgumentError] if it is in the set, or is a regular file, which never has to wait
    # @raise [IOError] if the IO or the set is closed
    def add(io)
      Check.responds("io", io, :to_io)
      own = io.to_io
      Check.refuse("io: is in the set: #{Check.shown(io)}") if watches?(own)
      @ios[fd = @calls.add(@set, own)] = io
      note_buffered(fd) if Poller.buffered?(own)
      self
    rescue Errno::EPERM
      Check.refuse("io: cannot be watched: #{Check.shown(io)}")
    end

    # Takes a socket out of the set.
    #
    # @param io [IO, #to_io]
    # @return [IO, #to_io, nil] nil: it was not in the set
    def delete(io)
      own = io.to_io
      fd = own.closed? ? @ios.key(io) : own.fileno
      return unless @ios[fd].equal?(io)

      @calls.delete(@set, fd)
      @buffered.delete(fd)
      @ios.delete(fd)
    end

    # Waits until some of the sockets can be read, or have been closed by the other side. They are taken out of the set:
    # add a socket again when it is idle again.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Array<IO, #to_io>] some of the sockets, in no order; empty when the time is over, and when another task
    #   was faster
    # @raise [IOError] if the set is closed, also meanwhile
    def wait(timeout = nil)
      @set.wait_readable(timeout) unless timeout == 0
      found = @calls.take(@set, @ios)
      @buffered.empty? ? found : found + take_buffered
    end

    # Closes the set, but not the sockets. {#wait} then raises IOError in the tasks that wait.
    #
    # @return [void]
    def close
      @set.close
      @bell&.close
      @ios.clear
    end

    private

    # An IO that was closed has left the kernel's set, and another may have its descriptor.
    def watches?(own)
      other = @ios[own.fileno]&.to_io
      other && !other.closed?
    end

    # Adds a descriptor that can always be read, so that {#wait} returns.
    def note_buffered(fd)
      @calls.ring(@set, @bell ||= ended_pipe)
      @buffered << fd
    end

    def ended_pipe
      reader, writer = IO.pipe
      writer.close
      reader
    end

    def take_buffered
      @buffered.shift(@buffered.size).filter_map do |fd|
        @calls.delete(@set, fd) if @ios.key?(fd)
        @ios.delete(fd)
      end
    end
  end
end
