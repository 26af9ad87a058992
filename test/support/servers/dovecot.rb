# frozen_string_literal: true

require "etc"
require_relative "server"

module TestSupport
  module Servers
    # IMAP for anybody with any password. Everybody has the mailboxes "0" to "49".
    class Dovecot < Server
      PROGRAM = "dovecot"
      PACKAGE = "dovecot-imapd"
      BOXES = 50

      private

      def prepare
        FileUtils.mkdir_p(File.join(folder, "run"))
        BOXES.times { |name| FileUtils.mkdir_p(File.join(folder, "mail/.#{name}/cur")) }
        Dir.glob(File.join(folder, "**/*"), File::FNM_DOTMATCH).each { |path| hand_over(path) }
      end

      def command
        [self.class.program, "-F", "-c", write_file("dovecot.conf", configuration)]
      end

      def ready? = File.exist?(File.join(folder, "run/master.pid")) && super

      def configuration
        user = Process.euid.zero? ? Etc.getpwnam("nobody") : Etc.getpwuid
        group = Process.euid.zero? ? Etc.getgrnam("nogroup") : Etc.getgrgid(user.gid)
        <<~TEXT
          protocols = imap
          listen = 127.0.0.1
          base_dir = #{folder}/run
          state_dir = #{folder}/run
          log_path = /dev/stderr
          default_internal_user = #{user.name}
          default_internal_group = #{group.name}
          default_login_user = #{user.name}
          first_valid_uid = 1
          first_valid_gid = 1
          ssl = no
          disable_plaintext_auth = no
          mail_max_userip_connections = 200
          mail_location = maildir:#{folder}/mail
          passdb {
            driver = static
            args = nopassword=y
          }
          userdb {
            driver = static
            args = uid=#{user.uid} gid=#{group.gid} home=#{folder}/mail
          }
          service anvil {
            chroot =
          }
          service imap-login {
            chroot =
            service_count = 0
            inet_listener imap {
              port = #{port}
            }
            inet_listener imaps {
              port = 0
            }
          }
        TEXT
      end
    end
  end
end
