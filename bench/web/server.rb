# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"
require_relative "../support/registry"
require_relative "../support/peer_gems"

module Bench
  module Web
    ITSI_CONFIG = File.expand_path("itsi.rb", __dir__)
    LIB = File.expand_path("../../heddle-server/lib", __dir__)
    EXE = File.expand_path("../../exe/heddle", __dir__)

    # How each server is started: one process that serves, or two, and threads only where it has nothing else.
    # Heddle-unsliced has no time slices. +gems+: the gems that it needs, of which the first one is named in the report.
    Kind = Struct.new(:gems, :command) do
      def arguments(port, application, gems)
        command.map do |part|
          part.start_with?("BIN/") ? program(part, gems) : part.sub("PORT", port.to_s).sub("APPLICATION", application)
        end
      end

      # @return [Kind] the same with more arguments before the application
      def with(*more) = self.class.new(gems, command[...-1] + more + command[-1..])

      private

      def program(part, gems)
        gems.env["GEM_PATH"].split(File::PATH_SEPARATOR).map { |folder| File.join(folder, part.downcase) }
          .find { |path| File.exist?(path) } or raise("there is no #{part}")
      end
    end

    HEDDLE = Kind.new(%w[protocol-http1 protocol-rack rack],
                      ["-I", LIB, EXE, "serve", "-p", "PORT", "--max-connections", "100000", "--max-idle", "600",
                       "APPLICATION"])
    PUMA = Kind.new(%w[puma rack], ["BIN/puma", "--quiet", "--bind", "tcp://127.0.0.1:PORT", "APPLICATION"])
    KINDS = {
      "Heddle" => HEDDLE,
      "Heddle-unsliced" => HEDDLE.with("--time-slice", "0"),
      "Falcon" => Kind.new(%w[falcon], ["BIN/falcon", "serve", "--count", "1", "--bind", "http://127.0.0.1:PORT",
                                        "--config", "APPLICATION"]),
      "Puma" => PUMA.with("--threads", "32:32"),
      "Itsi" => Kind.new(%w[itsi-server itsi-scheduler rack],
                         ["-r", "itsi/scheduler", "BIN/itsi", "--bind", "http://127.0.0.1:PORT",
                          "--config", ITSI_CONFIG]),
      "Heddle-2" => HEDDLE.with("--workers", "2"),
      "Puma-2" => PUMA.with("--workers", "2", "--threads", "16:16")
    }.freeze
    private_constant :HEDDLE, :PUMA

    # A server in a process of its own, with the processes that it starts.
    class Server
      # @return [Integer]
      attr_reader :port

      # @param kind [Kind]
      # @param load [#path, #application]
      # @param gems [PeerGems]
      def self.run(kind, load, gems)
        server = new(kind, load, gems)
        yield(server)
      ensure
        server&.stop
      end

      def initialize(kind, load, gems)
        @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
        @folder = Dir.mktmpdir("bench-web-")
        @log = File.join(@folder, "log")
        env = { "RUBYOPT" => "--yjit", "BENCH_FOLDER" => @folder, "BENCH_APPLICATION" => load.application }
        @pid = Process.spawn({ **Child::CLEAN_ENV, **gems.env, **env }, *Child::TIED, RbConfig.ruby,
                             *kind.arguments(@port, load.application, gems), %i[out err] => @log, pgroup: true)
        wait_for_answer(load.path)
      rescue StandardError
        stop
        raise
      end

      # @return [Float] seconds of CPU time until now
      def cpu
        processes.sum { |pid| File.read("/proc/#{pid}/stat").rpartition(")").last.split[11, 2].sum(&:to_i) } / 100.0
      end

      # @return [Float] MB, without what is shared with other programs
      def memory
        processes.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss: *(\d+)/, 1].to_i } / 1024.0
      end

      def stop
        Process.kill(:KILL, -@pid)
        Process.wait(@pid)
        FileUtils.rm_rf(@folder)
      end

      private

      def processes
        Dir.children("/proc").grep(/\A\d+\z/).select { |pid| of_group?(pid) }
      end

      def of_group?(pid)
        Process.getpgid(pid.to_i) == @pid
      rescue Errno::ESRCH
        false
      end

      def wait_for_answer(path)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
        begin
          TCPSocket.open("127.0.0.1", @port) do |socket|
            socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            raise Errno::ECONNREFUSED unless socket.wait_readable(5) && socket.readpartial(4096).include?(" 200 ")
          end
        rescue SystemCallError, EOFError
          late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
          raise "it does not start: #{File.readlines(@log).last}" if late

          sleep(0.1)
          retry
        end
      end
    end
  end
end
