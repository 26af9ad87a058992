# frozen_string_literal: true

require "etc"
require_relative "server"

module TestSupport
  module Servers
    # OpenSSH's server for the user of this process, who logs in with #key. All of its files are in its folder, which is
    # also the home of the user there: a shell reads the files of its home.
    class Sshd < Server
      PROGRAM = "sshd"
      PACKAGE = "openssh-server"
      # Where one that runs as root wants an empty folder.
      EMPTY = "/run/sshd"

      # @return [String, nil]
      def self.missing
        return super unless program && !program("ssh-keygen")

        "ssh-keygen is not installed (Debian's package openssh-client)"
      end

      # @return [String]
      def user = Etc.getpwuid.name

      # @return [String] the file with the private key of the user
      def key = File.join(folder, "user")

      def stop
        super
        Dir.rmdir(EMPTY) if @made_empty
      rescue SystemCallError
        nil # another one uses it
      end

      private

      def prepare
        %w[host user].each do |name|
          run("ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f", File.join(folder, name))
        end
        @made_empty = Process.euid.zero? && !Dir.exist?(EMPTY) && Dir.mkdir(EMPTY, 0o755)
      end

      def command
        File.write(File.join(folder, "config"), <<~TEXT)
          Port #{port}
          ListenAddress 127.0.0.1
          HostKey #{folder}/host
          AuthorizedKeysFile #{folder}/user.pub
          PidFile none
          StrictModes no
          UsePAM no
          PasswordAuthentication no
          PermitRootLogin yes
          SetEnv HOME=#{folder}
          MaxStartups 200
          MaxSessions 100
        TEXT
        [self.class.program, "-D", "-e", "-f", File.join(folder, "config")]
      end

      # Only as root may it become the user who logs in.
      def unprivileged(command)
        setpriv = self.class.program("setpriv") or return command
        [setpriv, "--pdeathsig", "KILL", "--", *command]
      end
    end
  end
end
