# frozen_string_literal: true

require_relative "server"

module TestSupport
  module Servers
    # MariaDB that lets everybody in (--skip-grant-tables, so it needs no tables of its own either), with a database
    # "heddle".
    class Mariadb < Server
      PROGRAM = "mariadbd"
      PACKAGE = "mariadb-server-core"

      private

      def prepare = make_folders("data", "data/heddle")

      def command
        [self.class.program, "--no-defaults", "--skip-grant-tables", "--datadir=#{folder}/data", "--port=#{port}",
         "--bind-address=127.0.0.1", "--socket=#{folder}/socket", "--pid-file=#{folder}/pid", "--skip-log-bin",
         "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0",
         "--performance-schema=off", "--max-connections=200"]
      end

      # It has nothing to save.
      def end_signal = :KILL
    end
  end
end
