# frozen_string_literal: true

require "English"
require "fileutils"
require "tmpdir"
require_relative "../free_port"
require_relative "pause"

module TestSupport
  # Real servers, from Debian's packages, for the tests of clients and for bench/. Each is started at its
  # first use in the process, on a free port of 127.0.0.1 and with a folder of its own, and is gone when the process is.
  module Servers
    # Raised when a server cannot be had here.
    class Missing < StandardError; end

    # The common part of all of them. A server says in its class: PROGRAM, PACKAGE and #command.
    class Server
      include FreePort

      STARTUP_LIMIT = 100
      SHUTDOWN_LIMIT = 30
      # Where Debian keeps servers that are not for everybody's PATH.
      FOLDERS = ["/usr/sbin", "/sbin"].freeze

      class << self
        # @return [Server] the one of this process
        def start
          @start ||= new.tap(&:start)
        end

        # @return [Server, nil] the one of this process, if there is one
        def running = @start

        # @return [String, nil] why it cannot be had here
        def missing
          "#{self::PROGRAM} is not installed (Debian's package #{self::PACKAGE})" unless program
        end

        # @return [String, nil]
        def program(name = self::PROGRAM)
          return name if name.start_with?("/")

          (ENV.fetch("PATH", "").split(":") + FOLDERS + self::FOLDERS).map { |folder| File.join(folder, name) }
            .find { |path| File.file?(path) && File.executable?(path) }
        end
      end

      attr_reader :port, :folder, :pid

      # @raise [Missing]
      def start
        raise Missing, self.class.missing if self.class.missing

        @owner = Process.pid
        at_exit { stop if Process.pid == @owner }
        @folder = Dir.mktmpdir("heddle-#{self.class::PROGRAM}")
        hand_over(@folder)
        prepare
        # Somebody else may take the port between our look and the server's.
        3.times.any? { launch } or raise Missing, "#{self.class::PROGRAM} does not start:\n#{log}"
      rescue Exception
        stop
        raise
      end

      def stop
        end_process if @pid
        FileUtils.rm_rf(@folder) if @folder
      end

      # Ends it, whoever is connected, and starts it again at the same port, with what it has stored.
      def restart
        end_process
        FileUtils.rm_f(log_file)
        # What it has left behind may be in use for a moment.
        3.times.any? { launch(@port) || (sleep(1) && nil) } or
          raise Missing, "#{self.class::PROGRAM} does not start again:\n#{log}"
      end

      # While the block runs, the server does nothing: connections are accepted by the kernel, and nothing is answered.
      def paused(&) = Pause.during(@pid, &)

      # @return [Integer] the connections whose question waits for the server
      def unread = Pause.unread(port)

      # @return [String] what the server said last
      def log = File.exist?(log_file) ? File.readlines(log_file).last(10).join : ""

      private

      # Whatever has to be there before the first start.
      def prepare = nil

      # Makes folders below that of the server, which may write there.
      def make_folders(*names)
        names.each do |name|
          FileUtils.mkdir_p(File.join(folder, name))
          hand_over(File.join(folder, name))
        end
      end

      # @return [String] the path of a file for the server
      def write_file(name, text)
        File.join(folder, name).tap do |path|
          File.write(path, text)
          hand_over(path)
        end
      end

      def ready?
        TCPSocket.new("127.0.0.1", port).close
        true
      rescue SystemCallError
        false
      end

      # The signal that ends this server.
      def end_signal = :TERM

      def log_file = File.join(@folder, "log")

      def launch(port = free_port)
        @port = port
        # Ctrl-C is for us; we end it.
        @pid = Process.spawn(*unprivileged(command), in: File::NULL, out: [log_file, "a"], err: %i[child out],
                                                     chdir: @folder, pgroup: true)
        deadline = now + self.class::STARTUP_LIMIT
        until ready?
          return @pid = nil if Process.wait(@pid, Process::WNOHANG)
          raise Missing, "#{self.class::PROGRAM} has not begun to answer:\n#{log}" if now > deadline

          sleep(0.02)
        end
        true
      end

      # Servers refuse to run as root. This one also ends when this process is killed.
      def unprivileged(command)
        setpriv = self.class.program("setpriv") or return command
        [setpriv, *(other_user if Process.euid.zero?), "--pdeathsig", "KILL", "--", *command]
      end

      def other_user = ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]

      def hand_over(path)
        FileUtils.chown("nobody", "nogroup", path) if Process.euid.zero?
      end

      # Runs a helper of the server to its end.
      def run(*command)
        system(*unprivileged(command), in: File::NULL, out: [log_file, "a"], err: %i[child out], chdir: @folder) or
          raise Missing, "#{File.basename(command.first)} failed (#{$CHILD_STATUS}):\n#{log}"
      end

      def end_process
        Process.kill(end_signal, @pid)
        deadline = now + SHUTDOWN_LIMIT
        until Process.wait(@pid, Process::WNOHANG)
          Process.kill(:KILL, @pid) if now > deadline
          sleep(0.01)
        end
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      ensure
        @pid = nil
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
