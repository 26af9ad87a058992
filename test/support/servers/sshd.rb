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
      # Where one that runs as root wants an empty folder. One that a test has made is known by its mode.
      EMPTY = "/run/sshd"
      OURS = 0o711

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
        give_back_empty_folder if @empty
      end

      private

      def prepare
        %w[host user].each do |name|
          run("ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f", File.join(folder, name))
        end
        hold_empty_folder if Process.euid.zero?
      end

      # The test processes that run beside this one need it as well: each has a lock on it.
      def hold_empty_folder
        loop do
          FileUtils.mkdir_p(EMPTY, mode: OURS)
          @empty = File.open(EMPTY)
          @empty.flock(File::LOCK_SH)
          return if File.identical?(@empty, EMPTY)

          @empty.close # somebody has removed it meanwhile
        rescue Errno::ENOENT
          retry
        end
      end

      # The last one removes it.
      def give_back_empty_folder
        last = @empty.flock(File::LOCK_EX | File::LOCK_NB)
        Dir.rmdir(EMPTY) if last && @empty.stat.mode & 0o777 == OURS
      ensure
        @empty.close
      end

      def command
        config = write_file("config", <<~TEXT)
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
        [self.class.program, "-D", "-e", "-f", config]
      end

      # Only as root may it become the user who logs in.
      def other_user = nil
    end
  end
end
