# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # FTP for anybody, who may also write into the folder "files". A file comes no faster than RATE bytes a second.
    class Vsftpd < Server
      PROGRAM = "vsftpd"
      PACKAGE = "vsftpd"
      RATE = 100_000

      private

      def prepare
        FileUtils.mkdir_p(File.join(folder, "root"))
        make_folders("root/files")
      end

      def command
        configuration = write_file("vsftpd.conf", <<~TEXT)
          listen=YES
          listen_address=127.0.0.1
          listen_port=#{port}
          background=NO
          run_as_launching_user=YES
          anonymous_enable=YES
          no_anon_password=YES
          anon_root=#{folder}/root
          write_enable=YES
          anon_upload_enable=YES
          anon_other_write_enable=YES
          anon_world_readable_only=NO
          anon_max_rate=#{RATE}
          trans_chunk_size=4096
          secure_chroot_dir=#{folder}/root
          seccomp_sandbox=NO
          isolate=NO
          isolate_network=NO
          xferlog_enable=NO
          max_clients=0
          max_per_ip=0
        TEXT
        [self.class.program, configuration]
      end
    end
  end
end
