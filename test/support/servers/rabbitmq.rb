# frozen_string_literal: true

require "socket"
require_relative "server"

module TestSupport
  module Servers
    # RabbitMQ with its user "guest" (password "guest"). It takes about 5 seconds to start. Its Erlang asks a port
    # mapper, which gets a free port, too, and ends with the server.
    class Rabbitmq < Server
      PROGRAM = "rabbitmq-server"
      PACKAGE = "rabbitmq-server"
      STARTUP_LIMIT = 180
      # Not /usr/sbin: the one there runs only as the user rabbitmq.
      FOLDERS = Dir.glob("/usr/lib/rabbitmq/lib/*/sbin").reverse.freeze

      # @return [String, nil]
      def self.program(name = PROGRAM)
        return super unless name == PROGRAM

        FOLDERS.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
      end

      def stop
        super
        end_mapper
      end

      private

      def prepare
        make_folders("data", "logs")
        write_file("rabbitmq.conf", "num_acceptors.tcp = 1\ndisk_free_limit.absolute = 1MB\n")
        write_file("plugins", "[].\n")
      end

      def command
        end_mapper
        start_mapper
        ["env", *environment.map { |name, value| "#{name}=#{value}" }, self.class.program]
      end

      # One thread for its processes, and nothing of this machine's settings.
      def environment
        {
          "HOME" => File.join(folder, "data"), "ERL_EPMD_PORT" => @mapper_port, "ERL_EPMD_ADDRESS" => "127.0.0.1",
          "RUNNING_UNDER_SYSTEMD" => "1", # it does not stay beside the server as a shell
          "RABBITMQ_NODENAME" => "heddle#{Process.pid}@localhost", "RABBITMQ_NODE_IP_ADDRESS" => "127.0.0.1",
          "RABBITMQ_NODE_PORT" => port, "RABBITMQ_DIST_PORT" => free_port,
          "RABBITMQ_MNESIA_BASE" => File.join(folder, "data"), "RABBITMQ_LOG_BASE" => File.join(folder, "logs"),
          "RABBITMQ_LOGS" => "-", "RABBITMQ_CONFIG_FILE" => File.join(folder, "rabbitmq.conf"),
          "RABBITMQ_ADVANCED_CONFIG_FILE" => File.join(folder, "none"),
          "RABBITMQ_CONF_ENV_FILE" => File.join(folder, "none.env"),
          "RABBITMQ_ENABLED_PLUGINS_FILE" => File.join(folder, "plugins"),
          "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS" => "+S 1:1 +A 4 +sbwt none"
        }
      end

      # It has nothing to save.
      def end_signal = :KILL

      def start_mapper
        @mapper_port = free_port
        mapper = [self.class.program("epmd"), "-port", @mapper_port.to_s, "-address", "127.0.0.1"]
        @mapper = Process.spawn(*unprivileged(mapper), in: File::NULL, out: File::NULL, err: %i[child out],
                                                       chdir: folder, pgroup: true)
      end

      def end_mapper
        return unless @mapper

        Process.kill(:KILL, @mapper)
        Process.wait(@mapper)
        @mapper = nil
      end
    end
  end
end
